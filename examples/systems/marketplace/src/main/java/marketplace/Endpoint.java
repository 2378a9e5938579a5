package marketplace;

import jakarta.servlet.http.HttpServletRequest;

/** The endpoint groups of the document. Each has its tier, and the middle part of its key. */
public enum Endpoint {
    AUTH("auth", "auth", "auth", "/api/v1/auth"),
    DEALS_WRITE("deals-write", "api-write", "deals:w", "/api/v1/deals"),
    DEALS_READ("deals-read", "api-read", "deals:r", "/api/v1/deals"),
    CHANNELS("channels", "channels", "channels", "/api/v1/channels"),
    CREATIVE("creative", "creative", "creative", "/api/v1/creatives"),
    DISPUTE("dispute", "dispute", "dispute", "/api/v1/disputes"),
    ADMIN("admin", "admin", "admin", "/api/v1/admin"),
    /** All requests of a user count here, and in the group of their endpoint. */
    GLOBAL("global", "global", "global", "");

    final String policy;
    final String tier;
    final String key;
    final String path;

    Endpoint(String policy, String tier, String key, String path) {
        this.policy = policy;
        this.tier = tier;
        this.key = key;
        this.path = path;
    }

    /** Returns the group of a request. It uses the same path by which Spring finds the controller. */
    static Endpoint of(HttpServletRequest request) {
        String path = request.getServletPath();
        boolean reads = request.getMethod().equals("GET") || request.getMethod().equals("HEAD");
        for (Endpoint endpoint : values()) {
            boolean here = path.equals(endpoint.path) || path.startsWith(endpoint.path + "/");
            if (here && endpoint != GLOBAL && !(endpoint == DEALS_WRITE && reads)) {
                return endpoint;
            }
        }
        return GLOBAL;
    }

    static Endpoint ofPolicy(String policy) {
        for (Endpoint endpoint : values()) {
            if (endpoint.policy.equals(policy)) {
                return endpoint;
            }
        }
        return GLOBAL;
    }
}
