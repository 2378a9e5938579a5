package gateway;

import io.netty.handler.ipfilter.IpFilterRuleType;
import io.netty.handler.ipfilter.IpSubnetFilterRule;
import io.netty.util.NetUtil;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.List;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.stereotype.Component;

/**
 * Finds the client of a request. It reads all lines of X-Forwarded-For from the end, as far as trusted proxies wrote
 * them. The resolvers of Spring Cloud Gateway discard the header if it has several lines, and believe every peer.
 */
@Component
public class ClientAddresses {
    private final List<IpSubnetFilterRule> trusted;

    public ClientAddresses(RateLimitProperties properties) {
        trusted = properties.trustedProxies().stream().map(ClientAddresses::network).toList();
    }

    /** Returns the address nearest to the gateway that is not a trusted proxy, or "unknown". */
    String of(ServerHttpRequest request) {
        InetSocketAddress peer = request.getRemoteAddress();
        if (peer == null || peer.getAddress() == null) {
            return "unknown";
        }
        InetAddress client = peer.getAddress();
        String[] words = String.join(",", request.getHeaders().getOrDefault("X-Forwarded-For", List.of())).split(",");
        for (int i = words.length - 1; i >= 0 && trusts(client); i--) {
            InetAddress hop = address(words[i]);
            if (hop == null) {
                break;
            }
            client = hop;
        }
        return client.getHostAddress();
    }

    private boolean trusts(InetAddress address) {
        return trusted.stream().anyMatch(network -> network.matches(new InetSocketAddress(address, 0)));
    }

    /** Reads a literal address, with or without a port. It never asks DNS. Returns null for anything else. */
    private static InetAddress address(String word) {
        String literal = word.strip();
        if (literal.startsWith("[") && literal.contains("]")) {
            literal = literal.substring(1, literal.indexOf(']'));
        } else if (literal.indexOf(':') == literal.lastIndexOf(':')) {
            literal = literal.split(":", 2)[0];
        }
        byte[] bytes = NetUtil.createByteArrayFromIpAddressString(literal);
        try {
            return bytes == null ? null : InetAddress.getByAddress(bytes);
        } catch (UnknownHostException e) {
            return null;
        }
    }

    private static IpSubnetFilterRule network(String prefix) {
        String[] parts = prefix.split("/", 2);
        try {
            int bits = parts.length == 2 ? Integer.parseInt(parts[1]) : parts[0].contains(":") ? 128 : 32;
            return new IpSubnetFilterRule(parts[0], bits, IpFilterRuleType.ACCEPT);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(
                    "gateway.ratelimit.trusted-proxies takes networks like 10.0.0.0/8 or ::1, not " + prefix, e);
        }
    }
}
