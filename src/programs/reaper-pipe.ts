// A named pipe by which a start of a node knows that the reaper of the node's former process has ended: the
// gateway and its reaper keep it open, so the next process reads its end when the last of them is gone. Source:
// ADR 160.

import { execFile } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { codeOf, reasonOf } from '../domain/errors/errors.ts';
import { sleep, systemClock } from '../domain/time/clock.ts';

export interface ReaperPipeOptions {
  /** Path of the pipe: the same at each start of a node, and different for each node. Its folder is created. */
  readonly path: string;
  /** Gets a line when programs have to wait. */
  readonly onNotice: (line: string) => void;
  /** Gets a line when the pipe cannot be used, and when programs start although the reaper has not ended. */
  readonly onWarning: (line: string) => void;
}

/** The longest wait, in ms. A reaper is done 6 s after the end of its gateway; a machine under load gets some seconds more. */
const MAX_WAIT_MS = 10_000;
const CHECK_MS = 50;
/** Bytes of one read: more than the process groups of one gateway take. */
const READ_BYTES = 64 * 1024;

/** The end of the pipe that this process keeps open until `close`. */
export class ReaperPipe {
  readonly #options: ReaperPipeOptions;
  #freed: Promise<void> | undefined;
  #isFree = false;
  /** True when the pipe was there, and its end was awaited. */
  #isKnown = false;
  #fd: number | undefined;
  #isClosed = false;

  constructor(options: ReaperPipeOptions) {
    this.#options = options;
  }

  /** The end of the pipe that the reaper inherits; undefined until `untilFree`, and where there is no pipe. */
  get fd(): number | undefined {
    return this.#fd;
  }

  /** False: a former process may have had another pipe, or none; also until `untilFree` has resolved. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Resolves when no reaper of a former process runs, after 10 s at the latest; undefined from then on. Never rejects. */
  untilFree(): Promise<void> | undefined {
    if (this.#isFree) return undefined;
    this.#freed ??= this.#take().then(() => {
      this.#isFree = true;
    });
    return this.#freed;
  }

  /** The reaper keeps it open while it runs. */
  close(): void {
    this.#isClosed = true;
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  async #take(): Promise<void> {
    const { path, onWarning } = this.#options;
    try {
      const { former, isNew } = await openOrMake(path);
      try {
        await this.#untilEnd(former);
        this.#isKnown = !isNew;
      } finally {
        closeSync(former);
      }
      // The pipe is opened without blocking: the reaper writes into it, and must not wait for a reader.
      if (!this.#isClosed) this.#fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    } catch (thrown) {
      onWarning(
        `programs of a former process of this node may run beside new ones for some seconds, because "${path}" cannot be ` +
          `used as a named pipe: ${reasonOf(thrown)}`,
      );
    }
  }

  async #untilEnd(former: number): Promise<void> {
    const { path, onNotice, onWarning } = this.#options;
    const piece = Buffer.alloc(READ_BYTES);
    const giveUpAtMs = systemClock.now() + MAX_WAIT_MS;
    let groups = '';
    let isNoticed = false;
    while (!this.#isClosed) {
      const text = readNow(former, piece);
      if (text === '') return;
      groups += text ?? '';
      if (!isNoticed) onNotice('programs start when those of the former process of this node have ended');
      isNoticed = true;
      if (systemClock.now() >= giveUpAtMs) {
        const which = groups.match(/\d+/g)?.join(', ') ?? 'unknown';
        onWarning(
          `programs of a former process of this node may still run (process groups: ${which}): its reaper, which has "${path}" ` +
            `open, did not end within ${MAX_WAIT_MS / 1_000} s`,
        );
        return;
      }
      await sleep(systemClock.background, CHECK_MS);
    }
  }
}

/** Opens it for reading, without a wait for a process that writes; makes it where there is none. */
async function openOrMake(path: string): Promise<{ readonly former: number; readonly isNew: boolean }> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK;
  let fd: number;
  let isNew = false;
  try {
    fd = openSync(path, flags);
  } catch (thrown) {
    if (codeOf(thrown) !== 'ENOENT') throw thrown;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await promisify(execFile)('mkfifo', ['-m', '600', path], {
      env: { PATH: '/usr/bin:/bin' },
      timeout: 5_000,
    });
    fd = openSync(path, flags);
    isNew = true;
  }
  if (fstatSync(fd).isFIFO()) return { former: fd, isNew };
  closeSync(fd);
  throw new Error('another file has this name');
}

/** What was written; an empty text when no process has it open for writing, undefined when one has, and wrote nothing. */
function readNow(fd: number, piece: Buffer): string | undefined {
  try {
    return piece.toString('latin1', 0, readSync(fd, piece));
  } catch (thrown) {
    if (codeOf(thrown) === 'EAGAIN') return undefined;
    throw thrown;
  }
}
