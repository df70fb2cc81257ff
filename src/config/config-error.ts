// The one error of configuration: one line with the problem and its source.
// The command line prints the message and exits with code 2.

/**
 * A setting that cannot be used. `message` is one line that names the source (`--port`, `GATEWAY_PORT`, `gateway.yaml:3, port`);
 * `others` are such lines about further settings.
 */
export class ConfigError extends Error {
  readonly others: readonly string[];

  constructor(message: string, cause?: unknown, others: readonly string[] = []) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ConfigError';
    this.others = others;
  }
}

/** Runs `work`; its ConfigError is recorded, and `otherwise` is returned instead. */
export type Noting = <T>(work: () => T, otherwise: T) => T;

/** The errors of all settings. */
export class ConfigFaults {
  readonly #faults: ConfigError[] = [];

  readonly note: Noting = (work, otherwise) => {
    try {
      return work();
    } catch (thrown) {
      if (!(thrown instanceof ConfigError)) throw thrown;
      this.#faults.push(thrown);
      return otherwise;
    }
  };

  /** Throws one ConfigError for all; nothing if there is none. */
  check(): void {
    const [first, ...rest] = this.#faults;
    if (first === undefined) return;
    // A host of two listeners is read twice.
    const others = new Set(rest.map(({ message }) => message));
    others.delete(first.message);
    throw new ConfigError(first.message, first.cause, [...others]);
  }
}
