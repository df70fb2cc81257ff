// Many sessions with an open stream each: plain HTTP without an SDK, so that thousands are cheap. Each client takes the next node for each
// request, as behind a balancer without stickiness, and leaves out nodes that refuse connections. When its stream ends it opens it again
// within a second, and calls. It may read numbered messages on it (heard-news.ts).

import { setTimeout as delay } from 'node:timers/promises';
import { initializeBody } from '../open-session.ts';
import { seeded } from '../seeded.ts';
import { NEWS, NewsReader } from './heard-news.ts';
import type { HerdRecord, HerdSession } from './herd-verdicts.ts';
import { nowMs } from './history.ts';
import { LightClient, type LightReply } from './light-client.ts';

export interface HerdOptions {
  readonly ports: readonly number[];
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether each session has a stream, and whether its client reads the messages there. */
  readonly streams: 'none' | 'open' | 'read';
  readonly seed: number;
}

/** One of so many streams that are read is opened at the next node, the others at that of their session: each of the former takes two more files. */
const NEXT_OF = 5;
/** Sessions that are being opened at a time, before the fault. */
const OPENINGS = 64;
/** Of so many sessions that only wait one is asked at the end. */
const ASKED_OF = 100;
/** Longest pause of a client before it opens its stream again, in ms. */
const PAUSE_MS = 1_000;
/** Pause after a refusal without `Retry-After`, in seconds. */
const AGAIN_S = '1';
/** A session that is not served for this time is given up, in ms. */
const PATIENCE_MS = 300_000;

interface Member extends HerdSession {
  /** Undefined where its client does not read the stream. */
  readonly news: NewsReader | undefined;
  /** A node where its streams are opened while it accepts connections. */
  readonly near: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

export class Herd {
  readonly #options: HerdOptions;
  readonly #client: LightClient;
  readonly #members: Member[] = [];
  /** Ports that refused a connection. */
  readonly #away = new Set<number>();
  #turn = 0;
  #faultAtMs: number | undefined;
  readonly #random: () => number;
  #streams = 0;
  #streamsOpenMs = 0;
  #told = 0;
  #unanswered = 0;
  readonly #refusals = new Map<string, number>();

  constructor(options: HerdOptions) {
    this.#options = options;
    this.#random = seeded(options.seed);
    this.#client = new LightClient(options.path, options.headers);
  }

  /** Resolves when so many further sessions are open, and have their stream. */
  async open(count: number): Promise<void> {
    const { streams } = this.#options;
    let left = count;
    await atOnce(() => {
      left -= 1;
      if (left < 0) return undefined;
      return this.#openOne().then((member) => (streams === 'none' ? undefined : this.#listen(member)));
    });
  }

  /** Sessions that the node with this port opened. */
  openedBy(port: number): number {
    return this.#members.filter((member) => member.port === port).length;
  }

  /** Some sessions make a call. */
  async askSome(): Promise<void> {
    this.#faultAtMs ??= nowMs();
    const some = this.#members.filter((_, index) => index % ASKED_OF === 0);
    await this.#callAll(some);
    this.#unanswered = some.filter(({ servedAfterMs }) => servedAfterMs === undefined).length;
  }

  /** From now on times count; `port`: that of the node that is being ended. */
  begin(port: number): void {
    this.#faultAtMs = nowMs();
    this.#streams = 0;
    for (const member of this.#members) member.isOfEnded = member.port === port;
  }

  /** Resolves when each session of the ended node is served again, or given up. */
  async served(): Promise<void> {
    const giveUpAtMs = (this.#faultAtMs ?? nowMs()) + PATIENCE_MS;
    const isWaiting = ({ isOfEnded, servedAfterMs, isLost }: Member) =>
      isOfEnded && servedAfterMs === undefined && !isLost;
    while (this.#members.some(isWaiting) && nowMs() < giveUpAtMs) await delay(50);
  }

  /** Resolves when each session of the other nodes has made a call. */
  async othersServed(): Promise<void> {
    await this.#callAll(this.#members.filter(({ isOfEnded }) => !isOfEnded));
  }

  /** Resolves when each stream has the message with this number, the last one, or is given up. */
  async heard(last: number): Promise<void> {
    this.#told = last;
    const giveUpAtMs = nowMs() + PATIENCE_MS;
    const isWaiting = ({ news, isLost }: Member) => news !== undefined && news.heard.last < last && !isLost;
    while (this.#members.some(isWaiting) && nowMs() < giveUpAtMs) await delay(50);
  }

  get record(): HerdRecord {
    const sessions = this.#members.map(({ port, isOfEnded, servedAfterMs, isLost, news }) => ({
      ...{ port, isOfEnded, servedAfterMs, isLost, heard: news?.heard },
    }));
    const refusals = Object.fromEntries(this.#refusals);
    const [streams, streamsOpenMs, unanswered] = [this.#streams, this.#streamsOpenMs, this.#unanswered];
    return { sessions, streams, streamsOpenMs, unanswered, told: this.#told, refusals };
  }

  async #callAll(members: readonly Member[]): Promise<void> {
    const left = [...members];
    await atOnce(() => {
      const next = left.pop();
      return next && this.#call(next);
    });
  }

  async #openOne(): Promise<Member> {
    const port = this.#nextPort();
    const { status, header, body } = await this.#client.post(port, {}, initializeBody);
    const id = header('mcp-session-id');
    if (status === 503) {
      // A busy machine: its nodes miss answers of the database. There is no fault yet.
      await delay(1_000 * Number(header('retry-after') ?? AGAIN_S));
      return this.#openOne();
    }
    if (status !== 200 || id === undefined) throw new Error(`no session: ${status} ${body}`);
    const headers = { 'Mcp-Session-Id': id, 'MCP-Protocol-Version': '2025-11-25' };
    const news = this.#options.streams === 'read' ? new NewsReader() : undefined;
    const near = news === undefined || this.#members.length % NEXT_OF === 0 ? undefined : port;
    const state = { isOfEnded: false, servedAfterMs: undefined, isLost: false };
    const member: Member = { port, near, headers, news, ...state };
    this.#members.push(member);
    await this.#client.post(port, headers, '{"jsonrpc":"2.0","method":"notifications/initialized"}');
    if (news !== undefined) {
      const subscribe = { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: NEWS } };
      const answer = await this.#client.post(port, headers, JSON.stringify(subscribe));
      if (!answer.body.includes('"result"'))
        throw new Error(`no subscription: ${answer.status} ${answer.body}`);
    }
    return member;
  }

  /** Resolves when the stream is open, or the session is lost. A stream that ends is opened again. */
  async #listen(member: Member): Promise<void> {
    const { headers, news } = member;
    const ended = (): void => void this.#listenAgain(member);
    const read = news && ((text: string): void => news.read(text));
    const open = (port: number): Promise<LightReply> => {
      news?.begin();
      const lastEventId = news?.lastEventId;
      const from = lastEventId === undefined ? headers : { ...headers, 'Last-Event-ID': lastEventId };
      return this.#client.stream(port, from, { read, ended });
    };
    const answer = await this.#tried(member, open, member.near);
    if (answer === undefined) return;
    this.#streams += 1;
    this.#streamsOpenMs = nowMs() - (this.#faultAtMs ?? nowMs());
  }

  async #listenAgain(member: Member): Promise<void> {
    await delay(this.#random() * PAUSE_MS);
    await this.#listen(member);
    if (member.isOfEnded && member.servedAfterMs === undefined) await this.#call(member);
  }

  async #call(member: Member): Promise<void> {
    this.#turn += 1;
    const token = `herd.${this.#turn}`;
    const params = { name: 'read', arguments: { token } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: this.#turn, method: 'tools/call', params });
    const answer = await this.#tried(member, (port) => this.#client.post(port, member.headers, body));
    if (answer === undefined || this.#faultAtMs === undefined) return;
    if (answer.body.includes(`"text":"${token}"`)) member.servedAfterMs ??= nowMs() - this.#faultAtMs;
    else this.#count(answer.body.slice(0, 200));
  }

  /** The first answer 200; undefined when the session is lost, or given up. `near`: the port of the node to ask while it accepts connections. */
  async #tried(
    member: Member,
    send: (port: number) => Promise<LightReply>,
    near?: number,
  ): Promise<LightReply | undefined> {
    const giveUpAtMs = nowMs() + PATIENCE_MS;
    while (nowMs() < giveUpAtMs) {
      const port = near === undefined || this.#away.has(near) ? this.#nextPort() : near;
      try {
        const answer = await send(port);
        const { status } = answer;
        if (status === 200) return answer;
        this.#count(String(status));
        member.isLost ||= status === 404;
        if (member.isLost) return undefined;
        await delay(1_000 * Number(answer.header('retry-after') ?? AGAIN_S));
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
}

/** OPENINGS at a time, until `next` has no more work. */
async function atOnce(next: () => Promise<unknown> | undefined): Promise<void> {
  const work = async (): Promise<void> => {
    for (let one = next(); one !== undefined; one = next()) await one;
  };
  await Promise.all(Array.from({ length: OPENINGS }, work));
}
