package marketplace;

import jakarta.servlet.http.HttpServletRequest;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Arrays;

/** The part of an address that one client has. */
final class ClientAddress {
    private static final int CLIENT_BYTES_V6 = 8;

    private ClientAddress() { }

    /** Returns the address of a request. An IPv6 client has a whole /64, and may use another address of it each time. */
    static String of(HttpServletRequest request) {
        try {
            byte[] bytes = InetAddress.getByName(request.getRemoteAddr()).getAddress(); // a literal: no DNS
            if (bytes.length == 4) {
                return InetAddress.getByAddress(bytes).getHostAddress();
            }
            Arrays.fill(bytes, CLIENT_BYTES_V6, bytes.length, (byte) 0);
            return InetAddress.getByAddress(bytes).getHostAddress() + "/64";
        } catch (UnknownHostException e) {
            throw new IllegalStateException(e); // the container sets literals only
        }
    }
}
