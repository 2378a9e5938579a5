package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// ratelimitVariable says what a variable of envoyproxy/ratelimit means to weir.
type ratelimitVariable struct {
	name     string // of a variable without an effect: several, and with * at its end all that begin so
	standard string // its value if it is not set
	flag     string // of weir serve; "": it only decides about others, or has no effect
	only     string // the flag is set only under this condition, like CONFIG_TYPE=FILE
	words    string // the accepted values and those of the flag, like on=true; "": any
	why      string // why weir accepts no other value, or why the variable has no effect
}

const (
	booleans = "true=true 1=true t=true false=false 0=false f=false"
	off      = "false=false 0=false f=false"
	ofTLS    = "GRPC_SERVER_USE_TLS=true"
	ofFiles  = "CONFIG_TYPE=FILE"
	ofXDS    = "CONFIG_TYPE=GRPC_XDS_SOTW"
	ofXDSTLS = "CONFIG_GRPC_XDS_SERVER_USE_TLS=true"

	fieldName = "weir has the default names of the fields only"
)

// ratelimitVariables are all variables of that program, of January 2026.
var ratelimitVariables = []ratelimitVariable{
	{name: "GRPC_HOST", standard: "0.0.0.0"},
	{name: "GRPC_PORT", standard: "8081", flag: "rls"},
	{name: "GRPC_UDS", flag: "rls-socket"},
	{name: "HOST", standard: "0.0.0.0"},
	{name: "PORT", standard: "8080", flag: "http"},
	{name: "GRPC_SERVER_USE_TLS", flag: "rls-tls", words: booleans},
	{name: "GRPC_SERVER_TLS_CERT", flag: "tls-cert-file", only: ofTLS},
	{name: "GRPC_SERVER_TLS_KEY", flag: "tls-key-file", only: ofTLS},
	{name: "GRPC_CLIENT_TLS_CACERT", flag: "tls-ca-file", only: ofTLS},
	{name: "GRPC_CLIENT_TLS_SAN", words: "=", why: "name the users of certificates with --users-file"},
	{name: "LOG_LEVEL", flag: "log-level", words: "trace=debug debug=debug info=info warn=warn warning=warn " +
		"error=error fatal=error panic=error"},
	{name: "LOG_FORMAT", flag: "log-format", words: "text=text json=json"},
	{name: "CONFIG_TYPE", standard: "FILE", words: "FILE=FILE GRPC_XDS_SOTW=GRPC_XDS_SOTW"},
	{name: "RUNTIME_ROOT", standard: "/srv/runtime_data/current", flag: "envoy-config", only: ofFiles},
	{name: "RUNTIME_SUBDIRECTORY"},
	{name: "RUNTIME_APPDIRECTORY", standard: "config"},
	{name: "MERGE_DOMAIN_CONFIG", flag: "envoy-merge-domains", words: booleans},
	{name: "LIMIT_RESPONSE_HEADERS_ENABLED", flag: "envoy-fields", words: booleans},
	{name: "CONFIG_GRPC_XDS_SERVER_URL", standard: "localhost:18000", flag: "envoy-xds", only: ofXDS},
	{name: "CONFIG_GRPC_XDS_NODE_ID", flag: "envoy-xds-node", only: ofXDS},
	{name: "CONFIG_GRPC_XDS_SERVER_USE_TLS", words: booleans},
	{name: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT", flag: "envoy-xds-ca-file", only: ofXDSTLS},
	{name: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", flag: "envoy-xds-cert-file", only: ofXDSTLS},
	{name: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY", flag: "envoy-xds-key-file", only: ofXDSTLS},
	{name: "CONFIG_GRPC_XDS_SERVER_TLS_SAN", flag: "envoy-xds-server-name", only: ofXDSTLS},

	{name: "CONFIG_GRPC_XDS_NODE_METADATA", words: "=", why: "weir tells the control plane its node id only"},
	{name: "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", words: "=", why: "weir sends no headers of its own"},
	{name: "SHADOW_MODE", words: off, why: "give the descriptors shadow_mode"},
	{name: "QUOTA_MODE", words: off, why: "give the descriptors quota_mode"},
	{name: "RESPONSE_DYNAMIC_METADATA", words: off, why: "weir sends no dynamic metadata"},
	{name: "LIMIT_LIMIT_HEADER", words: "ratelimit-limit=", why: fieldName},
	{name: "LIMIT_REMAINING_HEADER", words: "ratelimit-remaining=", why: fieldName},
	{name: "LIMIT_RESET_HEADER", words: "ratelimit-reset=", why: fieldName},

	{name: "DEBUG_HOST DEBUG_PORT", why: "/rlconfig is on the port of --http"},
	{name: "RUNTIME_WATCH_ROOT", why: "weir follows the directory and its symbolic links"},
	{name: "RUNTIME_IGNOREDOTFILES", why: "weir never reads files whose names begin with a dot"},
	{name: "FORCE_START_WITHOUT_INITIAL_CONFIG", why: "calls fail until the control plane has sent limits"},
	{name: "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", why: "weir is never healthy without its limits"},
	{name: "NEAR_LIMIT_RATIO", why: "near_limit counts from 0.8 of a limit"},
	{name: "BACKEND_TYPE REDIS_* MEMCACHE_* EXPIRATION_JITTER_MAX_SECONDS LOCAL_CACHE_SIZE_IN_BYTES CACHE_KEY_PREFIX",
		why: "weir keeps the counts itself"},
	{name: "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", why: "a denied request takes nothing"},
	{name: "USE_STATSD USE_DOG_STATSD* STATSD_* STATS_FLUSH_INTERVAL DISABLE_STATS EXTRA_TAGS USE_PROMETHEUS " +
		"PROMETHEUS_*", why: "the counters are at /metrics, on the port of --http"},
	{name: "GRPC_MAX_CONNECTION_AGE*", why: "weir closes a connection after 10 minutes without a call"},
	{name: "XDS_CLIENT_* CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", why: "weir has its own waits and bounds"},
	{name: "TRACING_*", why: "weir sends traces to --otlp-endpoint"},
}

// ratelimitFlags returns the flags of weir serve that variables of envoyproxy/ratelimit set. An empty variable is not
// set, and get returns "" for it.
func ratelimitFlags(get func(name string) string) (configFile, error) {
	flags, values := configFile{"http-check": "protected"}, map[string]string{}
	var errs []error
	for _, v := range ratelimitVariables {
		value := get(v.name)
		if value != "" && v.words != "" {
			meant, accepted := word(v.words, value)
			if meant == nil {
				text := fmt.Sprintf("%s must be %s", v.name, cmp.Or(strings.Join(accepted, ", "), "empty"))
				errs = append(errs, errors.New(strings.TrimSuffix(text+"; "+v.why, "; ")))
				continue
			}
			value = *meant
		}
		if value == "" {
			value = v.standard
		}
		values[v.name] = value
	}
	for _, v := range ratelimitVariables {
		name, want, _ := strings.Cut(v.only, "=")
		value := values[v.name]
		if v.flag == "" || value == "" || values[name] != want {
			continue
		}
		switch v.name {
		case "GRPC_PORT", "PORT":
			if _, err := strconv.ParseUint(value, 10, 16); err != nil {
				errs = append(errs, fmt.Errorf("%s must be a port, 0 to 65535, not %s", v.name, value))
			}
			value = net.JoinHostPort(values[strings.Replace(v.name, "PORT", "HOST", 1)], value)
		case "RUNTIME_ROOT":
			value = filepath.Join(value, values["RUNTIME_SUBDIRECTORY"], values["RUNTIME_APPDIRECTORY"])
		case "GRPC_CLIENT_TLS_CACERT":
			flags["tls-auth-clients"] = "required"
		}
		flags[v.flag] = value
	}
	if values["GRPC_UDS"] != "" {
		delete(flags, "rls") // it is in place of the port
	}
	if values["CONFIG_GRPC_XDS_SERVER_USE_TLS"] == "true" && values["CONFIG_GRPC_XDS_SERVER_TLS_CACERT"] == "" {
		errs = append(errs, errors.New("CONFIG_GRPC_XDS_SERVER_USE_TLS needs CONFIG_GRPC_XDS_SERVER_TLS_CACERT"))
	}
	return flags, errors.Join(errs...)
}

// word returns what a value means by a list of words, or nil and the accepted ones. Only words in capitals are compared
// with their case.
func word(words, value string) (meant *string, accepted []string) {
	for w := range strings.FieldsSeq(words) {
		from, to, _ := strings.Cut(w, "=")
		if from == value || from == strings.ToLower(value) {
			return &to, nil
		}
		accepted = append(accepted, from)
	}
	return nil, accepted
}

// tellUnused logs which variables of envoyproxy/ratelimit have no effect, in one line for each reason. It logs no
// value, because some are passwords.
func tellUnused(log *slog.Logger, environ []string) {
	for _, v := range ratelimitVariables {
		var names []string
		for pattern := range strings.FieldsSeq(v.name) {
			for _, set := range environ {
				name, value, _ := strings.Cut(set, "=")
				prefix, all := strings.CutSuffix(pattern, "*")
				if value != "" && (name == pattern || all && strings.HasPrefix(name, prefix)) {
					names = append(names, name)
				}
			}
		}
		if v.flag == "" && v.words == "" && v.why != "" && len(names) > 0 {
			log.Info("variables of envoyproxy/ratelimit have no effect", "variables", names, "because", v.why)
		}
	}
}
