// Receives one HTTP answer and reports its content: JSON-RPC messages as they arrive, then the ending.

import { ANSWERS_HOLD_TOO_MUCH } from '../../domain/errors/backend-errors.ts';
import { asGatewayError, type GatewayError } from '../../domain/errors/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type BackendMessage, readBatch, readMessage, unparsedSize } from '../../domain/mcp/jsonrpc.ts';
import {
  BYTES_PER_PIECE,
  type Holding,
  type InstanceHeldBytes,
  inOwnMemory,
  UNCOUNTED_BYTES,
} from '../../domain/memory/held-bytes.ts';
import type { HttpHeaders } from '../../domain/text.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { challengeIn } from '../../net/http1/challenge.ts';
import type { AnswerReceiver, Http1Connection } from '../../net/http1/http1-connection.ts';
import type { WrittenRequest } from '../../net/http1/request-writer.ts';
import { SseReader } from '../../net/http1/sse-reader.ts';
import type { BearerTokens } from '../backend-account.ts';
import type { AnswerEnding } from './answer-ending.ts';
import { BodyDecoder, codingOf } from './body-decoder.ts';
import type { CookieJar } from './cookie-jar.ts';
import {
  answerTooLarge,
  codingFailed,
  codingUnknown,
  connectionClosed,
  connectionFailed,
} from './failures.ts';
import { MAX_REFUSAL_BYTES, readRefusal, refusalText } from './refusal-text.ts';

export interface AnswerSink {
  /** Asked when there is a connection for the request. False: it is not sent, and the sink gets nothing more. */
  mayBeSent?(): boolean;
  began?(): void;
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
  send(sending: Sending, answer: HttpAnswer): void;
  /** The path of a URL in an answer to `from`; undefined for another origin. */
  pathOf(written: string, from: string): string | undefined;
  keepCookies(jar: CookieJar, path: string, header: string | readonly string[]): void;
}

/**
 * An answer, from its request to its end; it keeps nothing that it has reported. A JSON body is collected and read at
 * its end, an event stream event by event, both after they were decoded. A redirect within the origin is followed once.
 * It knows no calls and no sessions.
 */
export class HttpAnswer implements AnswerReceiver {
  readonly #sink: AnswerSink;
  #connection: Http1Connection | undefined;
  /** The status of the answer; 0 before it. */
  status = 0;
  sessionId: string | undefined;
  #sender: Sender | undefined;
  #sending: Sending | undefined;
  /** The path that the answer redirects to. */
  #redirect: string | undefined;
  /** The content type of the answer. */
  #type: HttpHeaders[string];
  /** The content coding of the body; undefined when it has none. */
  #coding: string | undefined;
  #decoder: BodyDecoder | undefined;
  #reader: SseReader | undefined;
  #chunks: Buffer[] = [];
  /** Bytes of a body; of a decoded stream, since its last message. */
  #bytes = 0;
  #isOver = false;
  #budget: InstanceHeldBytes | undefined;
  #run: TaskScheduler['run'] | undefined;
  /** Headers of a status that is not a success. */
  #refusal: HttpHeaders | undefined;
  #holding: Holding | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  /** True once the request is being written, and may arrive. */
  get isSent(): boolean {
    return this.#connection !== undefined;
  }

  get retryMs(): number | undefined {
    return this.#reader?.retryMs;
  }

  /** The id of the event to resume the stream after; undefined when it cannot be resumed. */
  get lastEventId(): string | undefined {
    return this.#reader?.lastEventId || undefined; // never empty
  }

  /** `run`: see TaskScheduler. Default: large bodies that end in one turn of the event loop are all read in it. */
  countIn(budget: InstanceHeldBytes | undefined, run?: TaskScheduler['run']): void {
    this.#budget = budget;
    this.#run = run;
  }

  /** The request that is answered, for a redirect, cookies, the words of a refusal, and the time that its rest may take. */
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

  /**
   * The rest of the answer is not needed. Aborts it only after LIMITS.backgroundMs: if it ends before, the
   * connection is kept.
   */
  dismiss(): void {
    if (!this.#isOver) this.#cancelTimer ??= this.#afterBackgroundTime(() => this.abort());
  }

  onRequestStart(connection: Http1Connection): boolean {
    if (!this.#isOver && this.#sink.mayBeSent?.() === false) this.#end();
    if (!this.#isOver) this.#connection = connection;
    return !this.#isOver;
  }

  onResponseStart(status: number, headers: HttpHeaders): void {
    this.status = status;
    if (headers['set-cookie'] !== undefined) this.#keepCookies(headers['set-cookie']);
    if ((status === 307 || status === 308) && this.#isRedirected(headers.location)) return;
    const sessionId = headers['mcp-session-id'];
    if (typeof sessionId === 'string' && sessionId !== '') this.sessionId = sessionId;
    if (headers['content-encoding'] !== undefined) this.#coding = codingOf(headers['content-encoding']);
    const type = headers['content-type'];
    this.#type = type;
    if (!isSuccess(status)) this.#beginRefusal(headers);
    else if (typeof type === 'string' && EVENT_STREAM.test(type)) {
      this.#reader = new SseReader(LIMITS.backendMessageBytes, this.#event);
    }
    if (!this.#isOver) this.#sink.began?.();
  }

  onResponseData(chunk: Buffer): void {
    if (this.#isOver) return;
    if (this.#redirect !== undefined) this.#skip(chunk);
    else if (this.#coding === undefined) this.#take(chunk);
    else this.#decode(this.#coding, chunk);
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    if (this.#redirect !== undefined) this.#sendAgain({ path: this.#redirect, isRedirected: true });
    else if (this.#decoder !== undefined) this.#decoder.end(() => this.#completeInTurn());
    else this.#completeInTurn();
  }

  /** A large body counts, and may be refused, until its turn. */
  #completeInTurn(): void {
    const isLarge = this.#reader === undefined && this.#bytes > LARGE_BODY_BYTES;
    if (isLarge && this.#run !== undefined) this.#run(() => this.#complete());
    else this.#complete();
  }

  onResponseError(error: Error): void {
    if (this.#isOver) return;
    const failure = connectionFailed(error, this.isSent);
    if (this.#decoder === undefined) this.#break(failure);
    else this.#decoder.end(() => this.#break(failure));
  }

  #take(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#bytes += chunk.length;
    let isWithin: boolean;
    if (this.#reader === undefined) {
      this.#chunks.push(this.#chunks.length === 0 ? chunk : inOwnMemory(chunk));
      if (this.#refusal !== undefined && this.#bytes > MAX_REFUSAL_BYTES && !isJson(this.#refusal)) {
        this.#endRefusal();
        return;
      }
      isWithin = this.#bytes <= LIMITS.backendMessageBytes;
    } else isWithin = this.#reader.push(chunk);
    // A few compressed bytes may be gigabytes of comments.
    if (this.#decoder !== undefined) isWithin &&= this.#bytes <= LIMITS.backendMessageBytes;
    if (isWithin) this.#count(this.#reader?.heldBytes ?? this.#bytes + this.#chunks.length * BYTES_PER_PIECE);
    else this.#refuse(answerTooLarge());
  }

  #complete(): void {
    if (this.#isOver) return;
    if (this.#refusal !== undefined) {
      this.#finishRefusal(this.#refusal);
      return;
    }
    this.#end();
    if (this.#reader !== undefined) {
      const early = this.#cutWords;
      const detail = `ended its event stream without an answer${early === '' ? '' : `; ${early}`}`;
      this.#sink.finished({ kind: 'complete', detail, isStreamed: true });
      return;
    }
    const body = this.#body;
    const message = body && readMessage(body);
    const batch = body === undefined || message !== undefined ? [] : readBatch(body);
    if (message !== undefined) this.#sink.message(message);
    for (const each of batch) this.#sink.message(each);
    // A message may be for another caller, so its text is not shown.
    const shown = message === undefined && batch.length === 0 ? body : undefined;
    this.#sink.finished({
      kind: 'complete',
      detail: `answered ${this.status} with ${this.#describe(shown)}`,
      isStreamed: false,
    });
  }

  #describe(shown: Buffer | undefined): string {
    const early = this.#cutWords;
    if (early !== '') return `a body, but ${early}`;
    if (this.#bytes === 0) return 'an empty body';
    const type = String(this.#type ?? '');
    const said =
      shown === undefined ? '' : refusalText(shown, { type, encoding: '' }, this.#sender?.secrets ?? []);
    const other = `something other than the JSON-RPC answer${said === '' ? '' : `: ${said}`}`;
    return unparsedSize(this.#bytes) ?? other;
  }

  get #cutWords(): string {
    return this.#decoder?.isCut === true ? `its encoding (${this.#coding}) ended early` : '';
  }

  #break(failure: GatewayError): void {
    if (this.#isOver) return;
    if (this.#refusal !== undefined) {
      this.#finishRefusal(this.#refusal); // the status is known, and says more
      return;
    }
    this.#end();
    this.#sink.finished({ kind: 'broken', failure });
  }

  #decode(coding: string, chunk: Buffer): void {
    this.#decoder ??= BodyDecoder.of(coding, chunk, {
      data: (decoded) => this.#take(decoded),
      tooLarge: () => this.#refuse(answerTooLarge()),
      failed: (error) => this.#refuse(codingFailed(coding, error)),
    });
    if (this.#decoder !== undefined) this.#decoder.push(chunk, this);
    // The body of a refusal is only an addition to its status.
    else if (isSuccess(this.status)) this.#refuse(codingUnknown(coding));
  }

  #keepCookies(header: string | string[]): void {
    if (this.#sending === undefined) return;
    const { jar, path } = this.#sending;
    if (jar !== undefined) this.#sender?.keepCookies(jar, path, header);
  }

  /** True when the request goes to another path of the same origin, for the first time. */
  #isRedirected(location: string | string[] | undefined): boolean {
    if (typeof location !== 'string' || this.#sending?.isRedirected !== false || this.#isOver) return false;
    this.#redirect = this.#sender?.pathOf(location, this.#sending.path);
    return this.#redirect !== undefined;
  }

  /** The body of a redirect is a text for people. */
  #skip(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > MAX_SKIPPED_BYTES) this.#refuse(answerTooLarge(MAX_SKIPPED_BYTES));
  }

  /** Sends the request again, with this change, and forgets the answer: nothing was done so far. */
  #sendAgain(change: Partial<Sending>): void {
    this.#redirect = undefined;
    this.#refusal = undefined;
    this.#chunks = [];
    this.#bytes = 0;
    this.#coding = undefined;
    this.#decoder = undefined;
    this.#connection = undefined;
    if (this.#sending !== undefined) this.#sender?.send({ ...this.#sending, ...change }, this);
  }

  readonly #event = (data: Buffer, type: string): void => {
    this.#bytes = 0;
    // Empty data primes a stream for resumption (2025-11-25).
    if (this.#isOver || data.length === 0) return;
    if (type !== 'message') {
      this.#sink.event?.(type, data);
      return;
    }
    const message = readMessage(data);
    if (message !== undefined) this.#sink.message(message);
    else for (const each of readBatch(data)) this.#sink.message(each);
  };

  /** Nothing but the beginning of its text is needed, so the rest is not waited for. */
  #beginRefusal(headers: HttpHeaders): void {
    this.#refusal = headers;
    this.#cancelTimer ??= this.#afterBackgroundTime(() => this.#endRefusal());
  }

  #endRefusal(): void {
    if (this.#isOver || this.#refusal === undefined) return;
    const connection = this.#connection;
    this.#finishRefusal(this.#refusal);
    connection?.abort(this);
  }

  #finishRefusal(headers: HttpHeaders): void {
    const { token } = this.#sending ?? {};
    const tokens = this.#sender?.tokens;
    const isAboutToken = this.status === 401 || this.status === 403;
    if (token === undefined || tokens === undefined || !isAboutToken) this.#endWithRefusal(headers);
    else
      void this.#askAbout(token, tokens, headers).catch((thrown: unknown) => {
        this.fail(thrown);
      });
  }

  /** Nothing was done: with another token the request is sent again, once. */
  async #askAbout(token: string, tokens: BearerTokens, headers: HttpHeaders): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#decoder?.close(); // what it still has must not be read as the next answer
    const { error, scopes } = challengeIn(String(headers['www-authenticate'] ?? ''));
    if (this.status === 403) {
      if (error !== 'insufficient_scope') this.#endWithRefusal(headers);
      else this.fail(await tokens.missingScopes(scopes));
      return;
    }
    if (this.#sending?.isRenewed === true) {
      this.fail(await tokens.refusedAgain(token));
      return;
    }
    const isRenewed = await tokens.renewed(token);
    if (this.#isOver) return;
    if (isRenewed) this.#sendAgain({ isRenewed: true });
    else this.#endWithRefusal(headers);
  }

  #endWithRefusal(headers: HttpHeaders): void {
    if (this.#isOver) return;
    this.#end();
    const refusal = readRefusal(this.status, headers, this.#body ?? Buffer.alloc(0), {
      isDecoded: this.#decoder !== undefined,
      origin: this.#sender?.origin,
      secrets: this.#sender?.secrets,
      ...this.#sending,
    });
    this.#sink.finished({ kind: 'refused', ...refusal });
  }

  get #body(): Buffer | undefined {
    return this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : this.#chunks[0];
  }

  #afterBackgroundTime(callback: () => void): (() => void) | undefined {
    return this.#sender?.clock.background.alarm(LIMITS.backgroundMs, callback);
  }

  #end(): void {
    this.#isOver = true;
    this.#cancelTimer?.();
    this.#decoder?.close();
    this.#holding?.release();
  }

  #count(held: number): void {
    const bytes = held + (this.#decoder?.heldBytes ?? 0);
    if (this.#isOver || (this.#holding === undefined && bytes <= UNCOUNTED_BYTES)) return;
    this.#holding ??= this.#budget?.hold(() => this.#refuse(connectionClosed(ANSWERS_HOLD_TOO_MUCH, true)));
    this.#holding?.set(bytes);
  }

  #refuse(failure: GatewayError): void {
    this.#chunks = [];
    if (this.#refusal !== undefined) {
      this.#endRefusal(); // the status is known, and says more
      return;
    }
    this.abort();
    this.#reader = undefined; // the event would be too large again, so the stream is not resumed
    this.#sink.finished({ kind: 'broken', failure });
  }
}

/** A body of this size takes some ms to read, and many may end together. */
const LARGE_BODY_BYTES = 512 * 1024;

/** The most bytes that are read of the body of a redirect. */
const MAX_SKIPPED_BYTES = 64 * 1024;

const EVENT_STREAM = /^\s*text\/event-stream\s*(;|$)/i;

function isJson(headers: HttpHeaders): boolean {
  return /\bjson\b/i.test(String(headers['content-type'] ?? ''));
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
