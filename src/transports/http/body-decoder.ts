// Decodes the body of an answer whose server compressed it, piece by piece: a pause on the connection follows each piece that
// is not decoded yet. http-answer.ts bounds what comes out. Source: RFC 9110, 8.4.

import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  type ZlibOptions,
} from 'node:zlib';
import type { Dispatcher } from 'undici';

/** The content codings that are decoded. */
export const CODINGS = ['gzip', 'deflate', 'br'] as const;

/** Memory of one decoder. That of `br` grows to the size of what it has decoded. */
export const DECODER_BYTES = 64 * 1024;

interface DecoderSink {
  data(decoded: Buffer): void;
  /** The bytes are no body of this coding. Nothing follows. */
  failed(error: Error): void;
}

type Stream = ReturnType<typeof createGunzip> | ReturnType<typeof createBrotliDecompress>;

/** The coding that a header `content-encoding` names, in the spelling for messages; undefined when the body is plain. */
export function codingOf(header: string | string[]): string | undefined {
  const named = [header].flat().join(',').toLowerCase().split(',');
  const codings = named.map((name) => name.trim()).filter((name) => name !== '' && name !== 'identity');
  return codings.length === 0 ? undefined : codings.join(', ').slice(0, LONGEST_CODING);
}

const LONGEST_CODING = 64;

export class BodyDecoder {
  readonly #stream: Stream;
  #isPaused = false;

  /** A decoder for the body that begins with these bytes; undefined for another coding. */
  static of(coding: string, first: Buffer, sink: DecoderSink): BodyDecoder | undefined {
    const stream = streamOf(coding, first);
    return stream && new BodyDecoder(stream, sink);
  }

  private constructor(stream: Stream, sink: DecoderSink) {
    this.#stream = stream;
    stream.on('data', (decoded: Buffer) => sink.data(decoded));
    stream.on('error', (error) => sink.failed(error));
  }

  /** Takes the next bytes, which it may keep. Pauses the answer until they are decoded. */
  push(chunk: Buffer, answer: Pick<Dispatcher.DispatchController, 'pause' | 'resume'>): void {
    if (this.#stream.write(chunk) || this.#isPaused) return;
    this.#isPaused = true;
    answer.pause();
    const resume = (): void => {
      if (!this.#isPaused) return;
      this.#isPaused = false;
      answer.resume();
    };
    this.#stream.once('drain', resume).once('close', resume);
  }

  /** Calls back when everything that was taken is decoded. */
  end(decoded: () => void): void {
    if (this.#stream.readableEnded) decoded();
    else this.#stream.once('end', decoded).end();
  }

  close(): void {
    this.#stream.destroy();
  }
}

/** What has arrived is decoded at once, and a body may end without its last bytes: the JSON in it shows whether it is whole. */
const PROMPT: ZlibOptions = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
const PROMPT_BROTLI = {
  flush: constants.BROTLI_OPERATION_FLUSH,
  finishFlush: constants.BROTLI_OPERATION_FLUSH,
};

function streamOf(coding: string, first: Buffer): Stream | undefined {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip(PROMPT);
    case 'deflate':
      // Many servers send it without the header of zlib, whose first byte names the method 8.
      return ((first[0] ?? 0) & 0x0f) === 8 ? createInflate(PROMPT) : createInflateRaw(PROMPT);
    case 'br':
      return createBrotliDecompress(PROMPT_BROTLI);
    default:
      return undefined;
  }
}
