// The error of a setting, one line with the problem and its source. The command line prints it and exits with code 2.

import { OperatorError } from '../domain/errors/errors.ts';

/**
 * An invalid setting. `message` is one line that names the source (`--port`, `GATEWAY_PORT`, `gateway.yaml:3,
 * port`); `others` are such lines about further settings.
 */
export class ConfigError extends OperatorError {
  readonly others: readonly string[];

  constructor(message: string, cause?: unknown, others: readonly string[] = []) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ConfigError';
    this.others = others;
  }
}

/** Collects the errors of several settings, so that one start reports them all. */
export class ConfigErrors {
  readonly #errors: ConfigError[] = [];

  /** Runs `work`; records its ConfigError and returns `fallback` instead. */
  attempt<T>(work: () => T, fallback: T): T {
    try {
      return work();
    } catch (thrown) {
      if (!(thrown instanceof ConfigError)) throw thrown;
      this.#errors.push(thrown);
      return fallback;
    }
  }

  add(message: string): void {
    this.#errors.push(new ConfigError(message));
  }

  /** Throws one ConfigError for all errors, if any. */
  check(): void {
    const [first, ...rest] = this.#errors;
    if (first === undefined) return;
    // A host of two listeners is read twice.
    const others = new Set(rest.map(({ message }) => message));
    others.delete(first.message);
    throw new ConfigError(first.message, first.cause, [...others]);
  }
}
