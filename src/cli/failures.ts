// The errors with which a command ends on purpose: main.ts prints them and exits with their code. Others are shown
// with their stack.

import { codeOf } from '../domain/errors/errors.ts';

/** An input that is invalid or not allowed here: exit code 2. The message is one line, or one per setting. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A command that was understood and failed: exit code 1. The first line of the message says what failed. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
}

/** A gateway refused a request, or its credentials. */
export class GatewayRefusal extends CommandFailure {
  /** The `error_code` of the answer. */
  readonly code: unknown;
  /** True when the message says which name was probably meant. */
  readonly hasSuggestion: boolean;

  constructor(message: string, code: unknown, { hasSuggestion = false } = {}) {
    super(message);
    this.code = code;
    this.hasSuggestion = hasSuggestion;
  }
}

/** The certificate of a gateway is refused. */
export class CertificateRefused extends CommandFailure {}

/** Ctrl-C at a question or during a wait: exit code 130, as if the signal had ended the program. */
export class Cancelled extends CommandFailure {
  constructor() {
    super('cancelled');
  }
}

/** A file that cannot be written, as the failure of a command. `outcomeText` is a clause about changes that were made. */
export function writeFailure(path: string, cause: unknown, outcomeText = ''): CommandFailure {
  const reason = codeOf(cause) ?? 'unknown reason';
  return new CommandFailure(`${path} cannot be written (${reason})${outcomeText}`, { cause });
}
