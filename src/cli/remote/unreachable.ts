// The reason why a gateway cannot be reached, as the failure of a command.

import { codeOf, messageOf } from '../../domain/errors/errors.ts';
import { ownCommand } from '../../domain/version.ts';
import { CertificateRefused, CommandFailure } from '../failures.ts';
import { certificateFault } from './certificate-fault.ts';

/** The failure of a request that got no answer, as one line. */
export function unreachable(url: string, timeoutMs: number, error: unknown, method: string): CommandFailure {
  const fault = certificateFault(url, error);
  if (fault !== undefined) return new CertificateRefused(fault, { cause: error });
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const code = codeOf(cause);
  let reason = `${url} cannot be reached: ${code ?? messageOf(cause)}`;
  if (error instanceof Error && error.name === 'TimeoutError') {
    reason = `${url} did not answer within ${timeoutMs / 1000} s${outcomeText(method)}`;
  } else if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') {
    reason = `${url} does not speak HTTPS; name it as ${url.replace(/^https:/, 'http:')}`;
  } else if (code === 'ECONNREFUSED') {
    reason = `nothing listens at ${url}; start a gateway with "${ownCommand('gateway start')}"`;
  } else if (code !== undefined && BROKEN.includes(code)) {
    reason = `the connection to ${url} broke (${code})${outcomeText(method)}`;
  }
  return new CommandFailure(reason, { cause: error });
}

/** The codes of connections that ended after they were made. */
const BROKEN: readonly string[] = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];

/** The end of the message about a request that was sent and not answered. */
export function outcomeText(method: string): string {
  return method === 'GET' ? '' : '; the request may have been carried out';
}
