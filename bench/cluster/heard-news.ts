// What one stream brings: the messages of the backends, which have the numbers 1, 2, 3 and so on (backends/news.ts),
// and where a stream begins anew, because another node took the session over or its client came late, the notice that some may be missing.

/** The resource whose parts have the numbers. */
export const NEWS = 'news://all';

/** What a client got in one session, over all its streams. */
export interface Heard {
  /** The number of the last message. */
  last: number;
  /** Messages that did not come, without a notice before the next one. */
  missed: number;
  repeated: number;
  notices: number;
  /** Streams that did not continue the one before: each owes a notice. */
  begunAnew: number;
}

/** Reads the bodies of the streams of one session, one after the other. */
export class NewsReader {
  readonly heard: Heard = { last: 0, missed: 0, repeated: 0, notices: 0, begunAnew: 0 };
  /** The id of the last event; the next stream is opened with it. */
  lastEventId: string | undefined;
  /** The part of the ids of events that all of one stream have. */
  #stream: string | undefined;
  #isNoticed = false;
  #rest = '';

  begin(): void {
    this.#rest = '';
  }

  /** A part of the body, with the framing of chunks. */
  read(text: string): void {
    const events = (this.#rest + text).replaceAll(/(?:^|\r\n)[\da-f]+\r\n/g, '').split('\n\n');
    this.#rest = events.pop() ?? '';
    for (const event of events) this.#hear(event);
  }

  #hear(event: string): void {
    const [, id = this.lastEventId, stream = this.#stream] = /^id: ((\S+)\.\d+)$/m.exec(event) ?? [];
    this.lastEventId = id;
    if (this.#stream !== undefined && stream !== this.#stream) this.heard.begunAnew += 1;
    this.#stream = stream;
    const number = /"uri":"news:\/\/all(?:\/(\d+))?"/.exec(event);
    if (number === null) return;
    const { heard } = this;
    if (number[1] === undefined) {
      this.#isNoticed = true;
      heard.notices += 1;
      return;
    }
    const next = Number(number[1]);
    if (next <= heard.last) {
      heard.repeated += 1;
      return;
    }
    if (!this.#isNoticed) heard.missed += next - heard.last - 1;
    this.#isNoticed = false;
    heard.last = next;
  }
}
