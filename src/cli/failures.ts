// The two ways a command ends badly on purpose. main.ts turns each into a line on standard error and an exit code;
// everything else that is thrown is a defect of ours and is shown with its stack.

/** What was asked cannot be understood or is not allowed here: exit code 2. The message is one line. */
export class UsageError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UsageError';
  }
}

/** The command was understood and did not succeed: exit code 1. The message is one line; `details` are lines below it. */
export class CommandFailure extends Error {
  readonly details: readonly string[];

  constructor(message: string, options: ErrorOptions & { details?: readonly string[] } = {}) {
    super(message, options);
    this.name = 'CommandFailure';
    this.details = options.details ?? [];
  }
}
