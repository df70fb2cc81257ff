// The errors with which a command ends on purpose. main.ts turns each into a line on standard error and an exit code; any other
// error is unexpected and is shown with its stack.

import { codeOf } from '../domain/errors.ts';

/** The input is invalid or not allowed here: exit code 2. The message is one line, or one per setting. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The command was understood and failed: exit code 1. The message is one line; `details` are lines below it. */
export class CommandFailure extends Error {
  readonly details: readonly string[];

  constructor(message: string, options: ErrorOptions & { details?: readonly string[] } = {}) {
    super(message, options);
    this.name = 'CommandFailure';
    this.details = options.details ?? [];
  }
}

export class GatewayRefusal extends CommandFailure {
  /** `error_code` of the answer. */
  readonly code: string | undefined;

  constructor(message: string, code: string | undefined) {
    super(message);
    this.code = code;
  }
}

/** The user pressed Ctrl-C at a question or while a command waits: exit code 130, as if the signal had ended the program. */
export class Cancelled extends CommandFailure {
  constructor() {
    super('cancelled');
  }
}

/** A gateway refused the credentials, or there were none: exit code 1, unless the command works without them. */
export class NotLoggedIn extends CommandFailure {}

/** A file that cannot be written, as the failure of a command. `outcomeText` is a clause about changes that were made. */
export function writeFailure(path: string, cause: unknown, outcomeText = ''): CommandFailure {
  return new CommandFailure(
    `${path} cannot be written (${codeOf(cause) ?? 'unknown reason'})${outcomeText}`,
    {
      cause,
    },
  );
}
