// Decodes the body of an answer whose server compressed it, piece by piece: a pause on the connection follows each piece that
// is not decoded yet. answer-body.ts bounds the decoded bytes. Source: RFC 9110, 8.4.

import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
  type ZlibOptions,
} from 'node:zlib';
import { codeOf } from '../../../domain/errors/errors.ts';
import { LIMITS } from '../../../domain/limits.ts';

/** The content codings that are decoded. */
export const CODINGS = ['gzip', 'deflate', 'br', 'zstd'] as const;
/** Codings of one body that are undone, the last one first. */
export const MAX_CODINGS = 3;

/** The memory of one coding. That of `br` and `zstd` grows to the size of the decoded bytes. */
const DECODER_BYTES = 64 * 1024;

interface DecoderSink {
  data(decoded: Buffer): void;
  /** Codings within codings have grown beyond one message. Nothing follows. */
  tooLarge(): void;
  /** The bytes are not a body of this coding. Nothing follows. */
  failed(error: Error): void;
}

type Stream = ReturnType<typeof createGunzip | typeof createBrotliDecompress | typeof createZstdDecompress>;

/** An answer whose connection can pause. */
export interface Pausable {
  pause(): void;
  resume(): void;
}

/** The coding that a header `content-encoding` names, in the spelling for messages; undefined when the body is plain. */
export function codingOf(header: string | string[]): string | undefined {
  const named = [header].flat().join(',').toLowerCase().split(',');
  const codings = named.map((name) => name.trim()).filter((name) => name !== '' && name !== 'identity');
  return codings.length === 0 ? undefined : codings.join(', ').slice(0, MAX_CODING_LENGTH);
}

const MAX_CODING_LENGTH = 64;

/** Undoes the last coding of a body; another decoder undoes those below it. */
export class BodyDecoder {
  /** Memory of the codings that are undone. */
  readonly heldBytes: number;
  readonly #stream: Stream;
  readonly #sink: DecoderSink;
  /** The codings below. */
  readonly #below: readonly string[];
  #inner: BodyDecoder | undefined;
  /** Bytes that the decoders below got since they gave anything. */
  #innerBytes = 0;
  #isPaused = false;
  #isCut = false;
  /** Called at the end of the body; set once all bytes were taken. */
  #ended: (() => void) | undefined;

  /** A decoder for the body that begins with these bytes; undefined for other or too many codings. */
  static of(codings: string, first: Buffer, sink: DecoderSink): BodyDecoder | undefined {
    const names = codings.split(', ');
    if (names.length > MAX_CODINGS || names.some((name) => !STREAMS.has(name))) return undefined;
    return new BodyDecoder(names, first, sink);
  }

  private constructor(names: readonly string[], first: Buffer, sink: DecoderSink) {
    this.heldBytes = names.length * DECODER_BYTES;
    this.#sink = sink;
    this.#below = names.slice(0, -1);
    this.#stream = (STREAMS.get(names.at(-1) ?? '') ?? createGunzip)(first);
    this.#stream.on('data', (decoded: Buffer) => this.#pass(decoded));
    this.#stream.on('error', (error) => {
      if (codeOf(error) !== ENDS_EARLY) return sink.failed(error);
      this.#isCut = true;
      this.#ended?.();
    });
  }

  /** True when the body ended before its coding did. The JSON in it shows whether anything is missing. */
  get isCut(): boolean {
    return this.#isCut || this.#inner?.isCut === true;
  }

  /** Takes the next bytes, which it may keep. Pauses the answer until they are decoded. */
  push(chunk: Buffer, answer: Pausable): void {
    if (this.#stream.write(chunk) || this.#isPaused) return;
    this.#isPaused = true;
    answer.pause();
    const resume = (): void => {
      this.#stream.off('drain', resume).off('close', resume);
      this.#isPaused = false;
      answer.resume();
    };
    this.#stream.on('drain', resume).on('close', resume);
  }

  /** Calls back when everything that was taken is decoded. */
  end(decoded: () => void): void {
    const below = (): void => (this.#inner === undefined ? decoded() : this.#inner.end(decoded));
    this.#ended = below;
    if (this.#stream.readableEnded) below();
    else this.#stream.once('end', below).end();
  }

  close(): void {
    this.#stream.destroy();
    this.#inner?.close();
  }

  #pass(decoded: Buffer): void {
    if (this.#below.length === 0) {
      this.#sink.data(decoded);
      return;
    }
    this.#inner ??= new BodyDecoder(this.#below, decoded, {
      ...this.#sink,
      data: (bytes) => {
        this.#innerBytes = 0;
        this.#sink.data(bytes);
      },
    });
    this.#innerBytes += decoded.length;
    if (this.#innerBytes > LIMITS.backendMessageBytes) this.#sink.tooLarge();
    else this.#inner.push(decoded, this.#stream);
  }
}

/** The code of the error of every coding at the end of a body that ends early. */
const ENDS_EARLY = 'Z_BUF_ERROR';

/** The options with which arrived bytes are decoded at once. */
const PROMPT: ZlibOptions = { flush: constants.Z_SYNC_FLUSH };
const PROMPT_BROTLI = { flush: constants.BROTLI_OPERATION_FLUSH };
/** The largest window that a body may need is 8 MiB. Source: RFC 9659. */
const PROMPT_ZSTD = {
  flush: constants.ZSTD_e_flush,
  params: { [constants.ZSTD_d_windowLogMax]: 23 },
};

/** The decoding streams by name of the coding; `first`: the first bytes. */
const STREAMS: ReadonlyMap<string, (first: Buffer) => Stream> = new Map(
  Object.entries({
    gzip: () => createGunzip(PROMPT),
    'x-gzip': () => createGunzip(PROMPT),
    // Many servers send `deflate` without the header of zlib, whose first byte names the method 8.
    deflate: (first) => (((first[0] ?? 0) & 0x0f) === 8 ? createInflate(PROMPT) : createInflateRaw(PROMPT)),
    br: () => createBrotliDecompress(PROMPT_BROTLI),
    zstd: () => createZstdDecompress(PROMPT_ZSTD),
  }),
);
