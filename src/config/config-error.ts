// The one error of configuration: what is wrong, where it was written, in one line.
// The command line prints the message and exits with code 2.

/** A setting that cannot be used. `message` is one line that names the source (`--port`, `GATEWAY_PORT`, `gateway.yaml, port`). */
export class ConfigError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ConfigError';
  }
}
