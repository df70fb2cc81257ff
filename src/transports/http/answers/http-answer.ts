// One request over HTTP and its answer: reports the JSON-RPC messages in it as they arrive, then its ending, and sends
// the request again after a redirect or with a renewed token. answer-body.ts reads the body.

import { asGatewayError, type GatewayError } from '../../../domain/errors/errors.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { type BackendMessage, readBatch, readMessage } from '../../../domain/mcp/jsonrpc.ts';
import { NO_BYTES } from '../../../domain/memory/bounded-bytes.ts';
import type { InstanceHeldBytes } from '../../../domain/memory/held-bytes.ts';
import type { HttpHeaders } from '../../../domain/text.ts';
import type { Clock } from '../../../domain/time/clock.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import { challengeIn } from '../../../net/http1/backend-challenge.ts';
import type { Http1Connection, RequestSink } from '../../../net/http1/http1-connection.ts';
import type { WrittenRequest } from '../../../net/http1/request-writer.ts';
import type { BearerTokens } from '../../backend-account.ts';
import type { CookieJar } from '../sessions/cookie-jar.ts';
import { AnswerBody } from './answer-body.ts';
import type { AnswerEnding } from './answer-ending.ts';
import { connectionFailed } from './http-failures.ts';
import { readRefusal } from './refusal-text.ts';

/** Gets the messages of an answer as they arrive, then its end or its failure. */
export interface AnswerSink {
  /** It is asked when there is a connection for the request. False: it is not sent, and the sink gets nothing more. */
  mayBeSent?(): boolean;
  /** Called when the request is held back for a token, and when it no longer is. */
  held?(isHeld: boolean): void;
  began?(): void;
  /** The caller for whom the request is sent, if it is known. */
  readonly callerId?: string | undefined;
  /** A message of a success, in order of arrival. */
  message(message: BackendMessage): void;
  /** An event of another type than `message`, which only HTTP+SSE has. */
  event?(type: string, data: Buffer): void;
  /** Called once, at the end; not after `abort`. */
  finished(ending: AnswerEnding): void;
}

/** One request, with the fields that are needed to send it again. */
export interface Sending extends WrittenRequest {
  readonly isLasting: boolean;
  readonly jar: CookieJar | undefined;
  /** True when a redirect led here. */
  readonly isRedirected: boolean;
  /** The access token in it. */
  readonly token?: string;
  /** True when the token that was in its place before was refused. */
  readonly isRenewed?: boolean;
}

/** The sender of a request. */
export interface Sender {
  readonly origin: string;
  readonly clock: Clock;
  /** Values that no text for callers may contain. */
  readonly secrets: readonly string[];
  /** The access tokens; set when each request has one. */
  readonly tokens?: BearerTokens | undefined;
  /** Counts the memory of unfinished answers. Default: it is not counted. */
  readonly answers?: InstanceHeldBytes | undefined;
  /** Reads large bodies in turns. Default: all that end in one turn of the event loop are read in it. */
  readonly scheduler?: Pick<TaskScheduler, 'run'> | undefined;
  send(sending: Sending, answer: HttpAnswer): void;
  /** The path of a URL in an answer to `from`; undefined for another origin. */
  pathOf(written: string, from: string): string | undefined;
  keepCookies(jar: CookieJar, path: string, header: string | readonly string[]): void;
}

/**
 * An answer, from its request to its end; it keeps nothing that it has reported. A JSON body is read at its end, an
 * event stream event by event. A redirect within the origin is followed once. It knows no calls and no sessions.
 */
export class HttpAnswer implements RequestSink {
  readonly #sink: AnswerSink;
  #connection: Http1Connection | undefined;
  /** The status of the answer; 0 before it. */
  status = 0;
  sessionId: string | undefined;
  #sender: Sender | undefined;
  #sending: Sending | undefined;
  /** The path that the answer redirects to. */
  #redirect: string | undefined;
  #body: AnswerBody | undefined;
  #isOver = false;
  #cancelTimer: (() => void) | undefined;

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  /** True once the request is being written, and may arrive. */
  get isSent(): boolean {
    return this.#connection !== undefined;
  }

  get retryMs(): number | undefined {
    return this.#body?.retryMs;
  }

  get lastEventId(): string | undefined {
    return this.#body?.lastEventId;
  }

  /** The request that is answered, and its sender, before it is sent. */
  sentBy(sender: Sender, sending: Sending): void {
    this.#sender = sender;
    this.#sending = sending;
  }

  /** Ends the request at once; the sink gets nothing more. A request that waits for a connection is not sent. */
  abort(): void {
    if (this.#isOver) return;
    this.#end();
    this.#connection?.abort(this);
  }

  /** Resolves as the promise of a token does; the request is held back until then. */
  async holdFor<T>(token: Promise<T>): Promise<T> {
    this.#sink.held?.(true);
    try {
      return await token;
    } finally {
      this.#sink.held?.(false);
    }
  }

  /** The request cannot be sent, or its answer be used. */
  fail(thrown: unknown): void {
    if (this.#isOver) return;
    this.#end();
    this.#sink.finished({ kind: 'broken', failure: asGatewayError(thrown) });
  }

  /** Reads nothing more until `resume`. */
  pause(): void {
    this.#connection?.pause(this);
  }

  resume(): void {
    this.#connection?.resume(this);
  }

  /** Aborts the request after LIMITS.backgroundMs: if its answer, which is not needed, ends before, the connection is kept. */
  abortLater(): void {
    if (!this.#isOver) this.#cancelTimer ??= this.#afterBackgroundTime(() => this.abort());
  }

  // --- RequestSink --------------------------------------------------------------------------------------

  onRequestStart(connection: Http1Connection): boolean {
    if (!this.#isOver && this.#sink.mayBeSent?.() === false) this.#end();
    if (!this.#isOver) this.#connection = connection;
    return !this.#isOver;
  }

  onResponseStart(status: number, headers: HttpHeaders): void {
    this.status = status;
    const { 'set-cookie': cookies, 'mcp-session-id': sessionId } = headers;
    if (cookies !== undefined) this.#keepCookies(cookies);
    if (status === 307 || status === 308) this.#redirect = this.#redirectTo(headers.location);
    const isSuccess = status >= 200 && status < 300;
    const use = this.#redirect !== undefined ? 'redirect' : isSuccess ? 'messages' : 'refusal';
    this.#body = new AnswerBody(this, use, headers, this.#sender?.answers, this.#sink.callerId);
    if (use === 'redirect') return;
    if (typeof sessionId === 'string' && sessionId !== '') this.sessionId = sessionId;
    // Nothing but the beginning of its text is needed, so the rest is not waited for.
    if (use === 'refusal') this.#cancelTimer ??= this.#afterBackgroundTime(() => this.#cutRefusal());
    if (!this.#isOver) this.#sink.began?.();
  }

  onResponseData(chunk: Buffer): void {
    if (!this.#isOver) this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    if (!this.#isOver) this.#body?.end();
  }

  onResponseError(error: Error): void {
    if (this.#isOver) return;
    const failure = connectionFailed(error, this.isSent);
    if (this.#body === undefined) this.fail(failure);
    else this.#body.end(failure);
  }

  // --- for its body ----------------------------------------------------------------------------------------

  event(data: Buffer, type: string): void {
    // Empty data primes a stream for resumption (2025-11-25).
    if (this.#isOver || data.length === 0) return;
    if (type === 'message') this.#report(data);
    else this.#sink.event?.(type, data);
  }

  bodyEnded(failure: GatewayError | undefined): void {
    if (this.#isOver || this.#body === undefined) return;
    // A large body counts, and may be refused, until its turn.
    const run = this.#body.isLarge && failure === undefined ? this.#sender?.scheduler?.run : undefined;
    if (run === undefined) this.#conclude(this.#body, failure);
    else run(() => this.#body && this.#conclude(this.#body));
  }

  bodyStopped(reason: GatewayError): void {
    if (this.#body?.use === 'refusal') {
      this.#cutRefusal(); // the status is known, and says more
      return;
    }
    this.abort();
    this.#sink.finished({ kind: 'broken', failure: reason });
  }

  // --- the ending ------------------------------------------------------------------------------------------

  #conclude(body: AnswerBody, failure?: GatewayError): void {
    if (this.#isOver) return;
    if (body.use === 'refusal') this.#takeRefusal();
    else if (failure !== undefined) this.fail(failure);
    else if (this.#redirect !== undefined) this.#sendAgain({ path: this.#redirect, isRedirected: true });
    else this.#complete(body);
  }

  #complete(body: AnswerBody): void {
    this.#end();
    const { isStream: isStreamed, content } = body;
    const isRead = content !== undefined && this.#report(content);
    const shown = isRead ? undefined : content;
    const detail = body.describe(this.status, shown, this.#sender?.secrets ?? []);
    this.#sink.finished({ kind: 'complete', detail, isStreamed });
  }

  /** True when there is a message in these bytes. */
  #report(data: Buffer): boolean {
    const message = readMessage(data);
    if (message !== undefined) {
      this.#sink.message(message);
      return true;
    }
    const batch = readBatch(data);
    for (const each of batch) this.#sink.message(each);
    return batch.length > 0;
  }

  /** Ends a refusal whose rest is not waited for. */
  #cutRefusal(): void {
    if (this.#isOver) return;
    const connection = this.#connection;
    this.#takeRefusal();
    connection?.abort(this);
  }

  #takeRefusal(): void {
    const { token, isRenewed = false } = this.#sending ?? {};
    const tokens = this.#sender?.tokens;
    const isAboutToken = this.status === 401 || this.status === 403;
    if (token === undefined || tokens === undefined || !isAboutToken) {
      this.#endWithRefusal();
      return;
    }
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#body?.stop(); // what it still has must not be read as the next answer
    const challenge = String(this.#body?.headers['www-authenticate'] ?? '');
    this.holdFor(afterRefusedToken(tokens, { token, isRenewed, status: this.status, challenge }))
      .then((next) => {
        if (this.#isOver) return;
        if (next === 'again') this.#sendAgain({ isRenewed: true });
        else if (next === 'refused') this.#endWithRefusal();
        else this.fail(next);
      })
      .catch((thrown: unknown) => this.fail(thrown));
  }

  #endWithRefusal(): void {
    const { headers = {}, content = NO_BYTES, isDecoded = false } = this.#body ?? {};
    this.#end();
    const refusal = readRefusal(this.status, headers, content, {
      isDecoded,
      origin: this.#sender?.origin,
      secrets: this.#sender?.secrets,
      ...this.#sending,
    });
    this.#sink.finished({ kind: 'refused', ...refusal });
  }

  // --- cookies, redirects, the request again ---------------------------------------------------------------

  #keepCookies(header: string | string[]): void {
    if (this.#sending === undefined) return;
    const { jar, path } = this.#sending;
    if (jar !== undefined) this.#sender?.keepCookies(jar, path, header);
  }

  /** The path to which the request goes next: another one of the same origin, for the first time. */
  #redirectTo(location: string | string[] | undefined): string | undefined {
    if (typeof location !== 'string' || this.#sending?.isRedirected !== false || this.#isOver)
      return undefined;
    return this.#sender?.pathOf(location, this.#sending.path);
  }

  /** Sends the request again, with this change, and forgets the answer: nothing was done so far. */
  #sendAgain(change: Partial<Sending>): void {
    this.#redirect = undefined;
    this.#body?.close();
    this.#body = undefined;
    this.#connection = undefined;
    if (this.#sending !== undefined) this.#sender?.send({ ...this.#sending, ...change }, this);
  }

  #afterBackgroundTime(callback: () => void): (() => void) | undefined {
    return this.#sender?.clock.background.alarm(LIMITS.backgroundMs, callback);
  }

  #end(): void {
    this.#isOver = true;
    this.#cancelTimer?.();
    this.#body?.close();
  }
}

interface RefusedToken {
  readonly token: string;
  /** True when the token before it was refused, too. */
  readonly isRenewed: boolean;
  readonly status: number;
  /** The header WWW-Authenticate. */
  readonly challenge: string;
}

/** What follows a refusal of a request with a token, which did nothing: it is sent `again` with another one, at most once. */
async function afterRefusedToken(
  tokens: BearerTokens,
  { token, isRenewed, status, challenge }: RefusedToken,
): Promise<'again' | 'refused' | Error> {
  const { error, scopes } = challengeIn(challenge);
  if (status === 403) return error === 'insufficient_scope' ? tokens.missingScopes(scopes) : 'refused';
  if (isRenewed) return tokens.refusedAgain(token);
  return (await tokens.renewed(token)) ? 'again' : 'refused';
}
