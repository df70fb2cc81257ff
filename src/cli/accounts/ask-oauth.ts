// Requests to the authorization server of a gateway, without credentials. Every wait is bounded, and every failure is one line.

import { plainLine } from '../../domain/text.ts';
import { GatewayRefusal } from '../failures.ts';
import { beginningOf } from '../remote/answering-url.ts';
import { answerIn, type Fields, fields } from '../remote/answers.ts';
import { unreachable } from '../remote/unreachable.ts';

/** The longest wait for an answer, in ms: the gateway waits up to 16 s for a silent database. */
const ANSWER_MS = 20_000;
const MAX_REASON_LENGTH = 200;

/**
 * The fields of a 2xx answer, also of an empty one. Throws CommandFailure, GatewayRefusal with the code of OAuth
 * or of the gateway. Without a form the request is a GET.
 */
export async function askOAuth(
  url: string,
  path: string,
  form?: Readonly<Record<string, string>>,
  timeoutMs = ANSWER_MS,
): Promise<Fields> {
  const method = form === undefined ? 'GET' : 'POST';
  let ok: boolean;
  let answer: Fields;
  let status: number;
  try {
    const response = await fetch(url + path, {
      method,
      body: form === undefined ? null : new URLSearchParams(form),
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    ({ ok, status } = response);
    answer = fields(answerIn(await beginningOf(response)));
  } catch (error) {
    throw unreachable(url, timeoutMs, error, method);
  }
  if (ok) return answer;
  const { error, error_code: code = error ?? `status ${status}` } = answer;
  const { error_description: description, detail = description ?? 'no reason given' } = answer;
  const reason = plainLine(String(detail).slice(0, MAX_REASON_LENGTH)).replace(/\.$/, '');
  throw new GatewayRefusal(`${reason} (${plainLine(String(code).slice(0, MAX_REASON_LENGTH))})`, code);
}
