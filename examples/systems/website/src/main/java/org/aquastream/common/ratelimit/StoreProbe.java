package org.aquastream.common.ratelimit;

import io.lettuce.core.RedisCommandExecutionException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.NoRouteToHostException;
import java.net.Socket;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.springframework.boot.autoconfigure.data.redis.RedisProperties;
import org.springframework.stereotype.Component;

/**
 * Tells a store that is not there from a store that is busy. A full pool, a timeout and a lost compare-and-swap are no
 * proof: whoever sends many requests can cause them, and must not pass by it.
 */
@Component
public class StoreProbe {
    private final List<InetSocketAddress> nodes;
    private final int timeoutMs;

    public StoreProbe(RedisProperties redis) {
        List<String> addresses = redis.getCluster() == null ? List.of(redis.getHost() + ":" + redis.getPort()) : redis.getCluster().getNodes();
        nodes = addresses.stream().map(StoreProbe::address).toList();
        timeoutMs = (int) Optional.ofNullable(redis.getTimeout()).orElse(Duration.ofSeconds(2)).toMillis();
    }

    /** Reports whether the store says that it decides nothing, or whether every node refuses a new connection. */
    boolean isDown(Throwable failure) {
        for (Throwable e = failure; e != null; e = e.getCause()) {
            if (e instanceof RedisCommandExecutionException && String.valueOf(e.getMessage()).matches("(?s)(CLUSTERDOWN|LOADING).*")) {
                return true;
            }
        }
        return nodes.stream().allMatch(this::refuses);
    }

    private boolean refuses(InetSocketAddress node) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(node.getHostString(), node.getPort()), timeoutMs);
            return false;
        } catch (ConnectException | NoRouteToHostException | UnknownHostException e) {
            return true;
        } catch (IOException e) {
            return false; // a timeout, or no file descriptor
        }
    }

    private static InetSocketAddress address(String node) {
        int colon = node.lastIndexOf(':');
        return InetSocketAddress.createUnresolved(node.substring(0, colon), Integer.parseInt(node.substring(colon + 1)));
    }
}
