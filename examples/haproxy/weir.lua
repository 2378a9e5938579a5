-- http-request lua.weir POLICY: asks weir's /check about the client's address. Sets
-- txn.weir_status, and with it txn.weir_limit, txn.weir_retry and txn.weir_body.
local check = "http://127.0.0.1:6381/check/"

core.register_action("weir", { "http-req" }, function(txn, policy)
    local answer = core.httpclient():get {
        url = check .. policy .. "?key=" .. txn.f:src(),
        timeout = 1000,
    }
    local function first(name)
        local values = answer.headers and answer.headers[name]
        return values and values[0] or ""
    end
    txn:set_var("txn.weir_status", answer.status or 0)
    txn:set_var("txn.weir_limit", first("ratelimit"))
    txn:set_var("txn.weir_retry", first("retry-after"))
    txn:set_var("txn.weir_body", ((answer.body or ""):gsub("%s+$", "")))
end, 1)
