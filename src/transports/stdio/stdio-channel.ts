// JSON-RPC with one child process over its standard input and output, one message per line. It owns the child and the order of
// writing, and ends every exchange. stdio-handshake.ts determines the protocol era. Source: MCP basic/transports#stdio.

import type { Unsubscribable } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import { ANSWERS_HOLD_TOO_MUCH, backendUnavailable } from '../../domain/errors/backend-errors.ts';
import { tooManyMessages } from '../../domain/errors/request-errors.ts';
import { exitedWith } from '../../domain/instances/found-instances.ts';
import { errorWithoutSecrets } from '../../domain/instances/hidden-secrets.ts';
import type { OddOutput } from '../../domain/instances/instance.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { definedFields } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type BackendMessage, readBatch, readMessage, unparsedSize } from '../../domain/mcp/jsonrpc.ts';
import { CANCELLED, INITIALIZED } from '../../domain/mcp/mcp.ts';
import { BYTES_PER_PIECE, type InstanceHeldBytes } from '../../domain/memory/held-bytes.ts';
import type { Linked } from '../../domain/memory/linked-set.ts';
import { type Clock, settlesWithin } from '../../domain/time/clock.ts';
import type { Program } from '../../programs/child-process.ts';
import {
  EDGE_BYTES,
  LineDecoder,
  type LineListener,
  type OversizeLine,
} from '../../programs/line-decoder.ts';
import { ProgramRun, type ProgramRunOptions } from '../../programs/program-run.ts';
import { Channel, type ChannelOpening, type ExchangeObserver, type PendingExchange } from '../channel.ts';
import type { HandshakeChannel } from '../handshake.ts';
import type { CommandHistory, OpenOptions } from '../open-options.ts';
import { CLOSED_BY_GATEWAY, type Closed, type TransportDiagnostics } from '../transport.ts';
import { idsAtEdges } from './message-edges.ts';
import { Outbox, type OutgoingLine } from './outbox.ts';

interface ChannelOptions
  extends Pick<ProgramRunOptions, 'ladder' | 'reaper' | 'passEnv' | 'user' | 'scheduler' | 'runInContainer'>,
    Pick<OpenOptions, 'clock'>,
    Partial<Pick<OpenOptions, 'answers' | 'waitingBytes' | 'history'>> {
  /** True for a dedicated process, which may send requests to its client. Default: false, and its requests are refused. */
  readonly isDedicated?: boolean;
  /** True: the conversation goes on after its transport has ended. Default: like `isDedicated`. */
  readonly isIndependent?: boolean;
}

/** A program that ends within this time after a cancellation has ended because of it. Source: ADR 119. */
const FATAL_CANCELLATION_MS = 2_000;
/**
 * A program that ends within this time after the answer to its first call, without a failure, does so by design.
 * Source: ADR 113.
 */
const ENDS_AFTER_CALL_MS = 1_000;
/** The longest notification of a client: a few of them must not fill the outbox. */
const MAX_NOTIFICATION_CHARACTERS = 1024 * 1024;

/** The pipe to one program, which is started at once. A failed start ends the channel. */
export class StdioChannel extends Channel {
  /** The id of the process if it is dedicated to one client, set after the handshake. */
  pid: number | undefined;
  readonly isIndependent: boolean;
  readonly #program: ProgramRun;
  readonly #clock: Clock;
  readonly #outbox: Outbox;
  readonly #answers: InstanceHeldBytes | undefined;
  readonly #command: CommandHistory;
  /** The time at which the last cancellation was sent, on the monotonic clock. */
  #cancelledAtMs = Number.NEGATIVE_INFINITY;
  #answeredCalls = 0;
  /** The time at which the last call was answered, on the monotonic clock. */
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  /** True when the conversation has ended, and the program is expected to do so by itself. */
  #isEnding = false;
  #oddOutput: OddOutput | undefined;
  /** The reason why nothing more can be sent although the child still runs. */
  #fault: string | undefined;

  constructor(
    program: Program,
    { isDedicated = false, isIndependent, answers, clock, waitingBytes, history, ...options }: ChannelOptions,
  ) {
    super(isDedicated ? ANY_CLIENT : undefined, clock.now);
    this.#clock = clock;
    this.isIndependent = isIndependent ?? isDedicated;
    this.#answers = answers;
    this.#command = history?.command ?? {};
    const listener: LineListener = {
      onLine: (line) => this.#receive(line),
      onOversize: (line) => this.#receiveOversize(line),
    };
    const decoder = new LineDecoder(listener, LIMITS.backendMessageBytes, answers);
    const onOutput = (chunk: Buffer): void => decoder.write(chunk);
    const onPipeClosed = (pipe: string): void => this.#pipeClosed(`closed its standard ${pipe}`);
    this.#program = new ProgramRun(program, { onOutput, onPipeClosed, ...options });
    this.#outbox = new Outbox(this.#program, waitingBytes);
    void this.#program.exited.then((end) => {
      decoder.close();
      this.#noteFailure();
      if (end.exitCode === 0) this.#noteEndAfterCall();
      this.end(
        this.#fault === undefined
          ? { ...end, isExpected: false }
          : { reason: this.#fault, isExpected: false },
      );
    });
  }

  get wasStarted(): boolean {
    return this.#program.wasStarted;
  }

  get endsAfterCall(): boolean {
    return this.#command.endsAfterCall === true;
  }

  override get isUsable(): boolean {
    return super.isUsable && this.#fault === undefined;
  }

  /** True when the program exited by itself, or closed a pipe. */
  get hasFailed(): boolean {
    return this.ended?.isExpected === false || this.#fault !== undefined;
  }

  override async open(options: ChannelOpening, pipe?: HandshakeChannel): Promise<void> {
    await super.open(options, pipe);
    if (this.isIndependent) this.pid = this.#program.pid ?? undefined;
  }

  send(request: ExchangeRequest, observer: ExchangeObserver): Unsubscribable | undefined {
    const refusal =
      this.#fault ??
      (this.#answers?.refuses(request.method, request.callerId) ? ANSWERS_HOLD_TOO_MUCH : undefined);
    const exchange = this.begin(request, observer, refusal);
    if (exchange === undefined) return undefined;
    const call = new StdioCall(exchange, this, this.#outbox);
    if (this.#outbox.add(call)) return call;
    this.forget(exchange);
    observer.error(
      backendUnavailable('it does not read its input', { delivered: 'no', health: 'suspicious' }),
    );
    return undefined;
  }

  notify(method: string, params: JsonObject, ownerId = this.ownerId): void {
    if (method === CANCELLED) {
      if (this.#command.endsWhenCancelled === true) return;
      this.#cancelledAtMs = this.#clock.now();
    }
    const line = lineOf({ jsonrpc: '2.0', method, params }, ownerId);
    if (line.line.length > MAX_NOTIFICATION_CHARACTERS) return;
    const isRefusable = method !== CANCELLED && method !== INITIALIZED;
    if (isRefusable && !this.#outbox.hasBytesFor(line)) throw tooManyMessages();
    this.#outbox.add(line);
  }

  override diagnostics(): TransportDiagnostics {
    const { pid, tail } = this.#program;
    return { pid, stderr: tail.lines, ...definedFields({ oddOutput: this.#oddOutput }) };
  }

  override async close(): Promise<void> {
    this.end(CLOSED_BY_GATEWAY);
    if (
      this.#isEnding &&
      !(await settlesWithin(this.#program.exited, ENDS_AFTER_CALL_MS, this.#clock.background))
    )
      this.#command.endsAfterCall = false; // it would have gone on
    await this.#program.stop();
  }

  /** The next call would be lost in a program that is about to end, so the conversation ends before. */
  protected override answered({ method }: ExchangeRequest): void {
    if (method !== 'tools/call') return;
    this.#answeredCalls += 1;
    this.#answeredAtMs = this.#clock.now();
    if (this.#command.endsAfterCall !== true || !this.isIdle || !this.isUsable) return;
    this.#isEnding = true;
    this.end({ ...exitedWith(0), isExpected: false });
  }

  #noteEndAfterCall(): void {
    const isRecent = this.#clock.now() - this.#answeredAtMs < ENDS_AFTER_CALL_MS;
    if (this.isUsable && this.#answeredCalls === 1 && isRecent) this.#command.endsAfterCall = true;
  }

  override end(closed: Closed): void {
    this.#outbox.close();
    super.end(closed);
  }

  protected reply(message: object): void {
    if (!this.#outbox.isNotRead) this.#outbox.add(lineOf(message, this.ownerId));
  }

  /** Errors for callers do not show the secrets that the program got. */
  override receive(message: BackendMessage): void {
    if (message.kind === 'error') {
      super.receive({ ...message, error: errorWithoutSecrets(message.error, this.#program.secrets) });
    } else super.receive(message);
  }

  #countOdd(kind: keyof OddOutput): void {
    const counts = this.#oddOutput ?? { lines: 0, idsAsText: 0, arrays: 0 };
    this.#oddOutput = { ...counts, [kind]: counts[kind] + 1 };
  }

  #receive(line: Buffer): void {
    if (line.length === 0) return;
    const message = readMessage(line);
    if (message === undefined) this.#receiveUnusable(line);
    else {
      if (message.kind === 'result' && typeof message.id === 'string') this.#countOdd('idsAsText');
      this.receive(message);
    }
  }

  #receiveUnusable(line: Buffer): void {
    const batch = readBatch(line);
    for (const message of batch) this.receive(message);
    if (batch.length > 0) {
      this.#countOdd('arrays');
      return;
    }
    this.#countOdd('lines');
    // Text is a message for operators; a line that looks like JSON may be an answer and is not shown.
    if (!/^[{[]/.test(line.toString('latin1', 0, 1))) this.#program.tail.add(line);
    else if (line.includes('"jsonrpc"')) {
      const ids = idsAtEdges(line.subarray(0, EDGE_BYTES), line.subarray(-EDGE_BYTES));
      const size = unparsedSize(line.length);
      const what = size ?? 'something that is not a JSON-RPC answer';
      for (const id of ids ?? []) this.fail(id, `it answered with ${what}`);
      if (ids === undefined && size !== undefined) this.#program.tail.add(Buffer.from(`[dropped: ${size}]`));
    }
  }

  #receiveOversize(line: OversizeLine): void {
    this.#countOdd('lines');
    const reason = line.isCut
      ? ANSWERS_HOLD_TOO_MUCH
      : `it answered with a message of ${line.bytes} bytes, over the limit of ${LIMITS.backendMessageBytes}`;
    const ids = idsAtEdges(line.head, line.tail);
    for (const id of ids ?? []) this.fail(id, reason);
    if (ids?.length !== 0) return;
    // Fails all exchanges that the lost answer may belong to.
    this.failAll(({ delivered }) =>
      delivered === 'no' ? undefined : backendUnavailable(reason, { delivered, health: 'suspicious' }),
    );
  }

  /** The program has failed by itself, or the gateway has ended it. */
  #noteFailure(): void {
    const isRecent = this.#clock.now() - this.#cancelledAtMs < FATAL_CANCELLATION_MS;
    if (isRecent && this.isUsable) this.#command.endsWhenCancelled = true;
  }

  /** Notes that the child closed a pipe and still runs. Until it is stopped it may answer the requests that it has read. */
  #pipeClosed(fault: string): void {
    if (!this.isUsable) return;
    this.#noteFailure();
    this.#fault = fault;
    this.#outbox.close();
    this.failAll(({ delivered }) =>
      delivered === 'no' ? backendUnavailable(fault, { delivered }) : undefined,
    );
    void this.#program.stop();
  }
}

/** The request of an exchange, as a line in the outbox. */
class StdioCall implements OutgoingLine, Unsubscribable {
  readonly line: string;
  readonly ownerId: string;
  /** The bytes counted for the wait, which are none: the body of the call is counted until the call ends. */
  readonly waitingBytes = 0;
  links: Linked['links'];
  readonly #exchange: PendingExchange;
  readonly #channel: Channel;
  readonly #outbox: Outbox;

  constructor(exchange: PendingExchange, channel: Channel, outbox: Outbox) {
    this.line = exchange.text;
    this.ownerId = exchange.request.callerId ?? channel.ownerId;
    this.#exchange = exchange;
    this.#channel = channel;
    this.#outbox = outbox;
  }

  onWritten(): void {
    this.#exchange.delivered = 'unknown';
  }

  /** Cancels the exchange if it is still pending. Also called after every other end of it. */
  unsubscribe(): void {
    if (!this.#channel.forget(this.#exchange) || this.#outbox.remove(this)) return;
    this.#outbox.noteEnded(this);
    this.#channel.cancelOnBackend(this.#exchange);
  }
}

/** The client of a program is not known when that starts, so all requests are passed on. */
const ANY_CLIENT = { capabilities: { sampling: {}, elicitation: {}, roots: {} } };

function lineOf(message: object, ownerId: string): OutgoingLine {
  const line = JSON.stringify(message);
  return { line, ownerId, waitingBytes: line.length + BYTES_PER_PIECE, onWritten: () => {} };
}
