// Variables of the gateway that a program behind a proxy, or in a network with a certificate authority of its own, cannot do
// without. Data only: the default of a setting, and what transports/stdio/child-environment.ts looks for.

/** Proxies: programs look for them in one case or the other. */
const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'];

/** Source: ADR 52. */
export const PASS_ENV: readonly string[] = [
  ...PROXIES,
  ...PROXIES.map((name) => name.toLowerCase()),
  ...['npm_config_proxy', 'npm_config_https_proxy', 'npm_config_noproxy', 'npm_config_cafile'],
  ...['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'NODE_USE_SYSTEM_CA'],
  ...['REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'PIP_CERT', 'UV_SYSTEM_CERTS', 'UV_NATIVE_TLS'],
];
