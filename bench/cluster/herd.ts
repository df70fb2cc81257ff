// Many sessions with an open stream each: plain HTTP without an SDK, so that thousands are cheap. Each client takes the next node for each
// request, as behind a balancer without stickiness, and leaves out nodes that refuse connections. When its stream ends it opens it again
// within a second, and calls.

import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { initializeBody } from '../open-session.ts';
import { type HerdRecord, type HerdSession, nowMs } from './history.ts';

export interface HerdOptions {
  readonly ports: readonly number[];
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly count: number;
  readonly random: () => number;
}

/** Sessions that are being opened at a time, before the fault. */
const OPENINGS = 64;
/** Longest pause of a client before it opens its stream again, in ms. */
const PAUSE_MS = 1_000;
/** Pause after a refusal without `Retry-After`, in ms. */
const AGAIN_MS = 1_000;
/** A session that is not served for this time is given up, in ms. */
const PATIENCE_MS = 120_000;

interface Member extends HerdSession {
  readonly headers: Readonly<Record<string, string>>;
  stream: ClientRequest | undefined;
}

interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

export class Herd {
  readonly #options: HerdOptions;
  readonly #agent = new Agent({ keepAlive: true, keepAliveMsecs: 60_000 });
  readonly #members: Member[] = [];
  /** Ports that refused a connection. */
  readonly #away = new Set<number>();
  #turn = 0;
  #faultAtMs: number | undefined;
  #isOver = false;
  readonly #refusals = new Map<string, number>();

  constructor(options: HerdOptions) {
    this.#options = options;
  }

  /** Resolves when all sessions are open and have a stream. */
  async open(): Promise<void> {
    const { count } = this.#options;
    let left = count;
    const work = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        await this.#listen(await this.#openOne());
      }
    };
    await Promise.all(Array.from({ length: OPENINGS }, work));
  }

  /** From now on times count; `port`: that of the node that is being ended. */
  begin(port: number): void {
    this.#faultAtMs = nowMs();
    for (const member of this.#members) member.isOfEnded = member.port === port;
  }

  /** Resolves when each session of the ended node is served again or given up, and each other one has made a call. */
  async settled(): Promise<void> {
    const giveUpAtMs = (this.#faultAtMs ?? nowMs()) + PATIENCE_MS;
    const isWaiting = ({ isOfEnded, servedAfterMs, isLost }: Member) =>
      isOfEnded && servedAfterMs === undefined && !isLost;
    while (this.#members.some(isWaiting) && nowMs() < giveUpAtMs) await delay(100);
    const others = this.#members.filter(({ isOfEnded }) => !isOfEnded);
    const work = async (): Promise<void> => {
      for (let next = others.pop(); next !== undefined; next = others.pop()) await this.#call(next);
    };
    await Promise.all(Array.from({ length: OPENINGS }, work));
  }

  get record(): HerdRecord {
    const sessions = this.#members.map(({ port, isOfEnded, servedAfterMs, isLost }) => ({
      ...{ port, isOfEnded, servedAfterMs, isLost },
    }));
    return { sessions, refusals: Object.fromEntries(this.#refusals) };
  }

  close(): void {
    this.#isOver = true;
    for (const { stream } of this.#members) stream?.destroy();
    this.#agent.destroy();
  }

  async #openOne(): Promise<Member> {
    const port = this.#nextPort();
    const { status, headers, text } = await this.#send(port, 'POST', {}, initializeBody);
    const id = headers['mcp-session-id'];
    if (status !== 200 || typeof id !== 'string') throw new Error(`no session: ${status} ${text}`);
    const own = { 'Mcp-Session-Id': id, 'MCP-Protocol-Version': '2025-11-25' };
    const member: Member = {
      ...{ port, headers: own, stream: undefined, isOfEnded: false, servedAfterMs: undefined, isLost: false },
    };
    this.#members.push(member);
    await this.#send(port, 'POST', own, '{"jsonrpc":"2.0","method":"notifications/initialized"}');
    return member;
  }

  /** Resolves when the stream is open, or the session is lost. A stream that ends is opened again. */
  async #listen(member: Member): Promise<void> {
    const answer = await this.#tried(member, (port) => this.#openStream(port, member));
    if (answer === undefined) return;
    answer.resume();
    answer.on('close', () => void this.#listenAgain(member));
  }

  async #listenAgain(member: Member): Promise<void> {
    await delay(this.#options.random() * PAUSE_MS);
    if (this.#isOver) return;
    await this.#listen(member);
    if (member.isOfEnded && member.servedAfterMs === undefined) await this.#call(member);
  }

  async #call(member: Member): Promise<void> {
    this.#turn += 1;
    const params = { name: 'read', arguments: { token: `herd.${this.#turn}` } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: this.#turn, method: 'tools/call', params });
    const answer = await this.#tried(member, (port) => this.#send(port, 'POST', member.headers, body));
    if (answer !== undefined && this.#faultAtMs !== undefined)
      member.servedAfterMs ??= nowMs() - this.#faultAtMs;
  }

  /** The first answer 200; undefined when the session is lost, or given up. */
  async #tried<Answer extends Reply | IncomingMessage>(
    member: Member,
    send: (port: number) => Promise<Answer>,
  ): Promise<Answer | undefined> {
    const giveUpAtMs = nowMs() + PATIENCE_MS;
    while (!this.#isOver && nowMs() < giveUpAtMs) {
      const port = this.#nextPort();
      try {
        const answer = await send(port);
        const status = 'status' in answer ? answer.status : (answer.statusCode ?? 0);
        if (status === 200) return answer;
        this.#count(String(status));
        member.isLost ||= status === 404;
        if (member.isLost) return undefined;
        await delay(1_000 * Number(answer.headers['retry-after'] ?? AGAIN_MS / 1_000));
      } catch (thrown) {
        const { code = String(thrown) } = Object(thrown);
        if (code === 'ECONNREFUSED') this.#away.add(port);
        else this.#count(code);
      }
    }
    return undefined;
  }

  #count(refusal: string): void {
    this.#refusals.set(refusal, (this.#refusals.get(refusal) ?? 0) + 1);
  }

  #nextPort(): number {
    const usable = this.#options.ports.filter((port) => !this.#away.has(port));
    this.#turn += 1;
    return usable[this.#turn % usable.length] ?? 0;
  }

  #openStream(port: number, member: Member): Promise<IncomingMessage> {
    const { path, headers } = this.#options;
    const own = { ...headers, ...member.headers, Accept: 'text/event-stream' };
    return new Promise((resolve, reject) => {
      const stream = request({ host: '127.0.0.1', port, path, headers: own, agent: false }, resolve);
      stream.on('error', reject);
      stream.end();
      member.stream = stream;
    });
  }

  #send(port: number, method: string, more: Record<string, string>, body: string): Promise<Reply> {
    const { path, headers } = this.#options;
    const own = {
      ...{ ...headers, ...more, 'Content-Type': 'application/json' },
      Accept: 'application/json, text/event-stream',
      'Content-Length': String(Buffer.byteLength(body)),
    };
    return new Promise((resolve, reject) => {
      const outgoing = request({ host: '127.0.0.1', port, path, method, headers: own, agent: this.#agent });
      outgoing.on('error', reject);
      outgoing.on('response', (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (part: string) => {
          text += part;
        });
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
        answer.on('error', reject);
      });
      outgoing.end(body);
    });
  }
}
