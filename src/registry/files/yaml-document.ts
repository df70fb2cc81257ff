// Parses a document in YAML. The parser takes half a second for some thousand servers, so that a long text is parsed by a thread.

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { availableMemoryBytes } from '../../config/memory.ts';
import { readYaml } from '../../config/yaml.ts';
import { codeOf, messageOf } from '../../domain/errors/errors.ts';

/** UTF-16 units of a text that takes about 20 ms. */
const LONG_TEXT = 32_768;
/** The most memory of the thread, in MiB, and its share of that of the process: a text of some MB can take GB. */
const MAX_THREAD_MIB = 1_024;
const THREAD_SHARE = 1 / 4;
/** The part for new objects; by default, the thread has up to 192 MiB more for them. */
const YOUNG_SHARE = 1 / 8;

/** The message that the thread posts. */
type YamlAnswer = { readonly value: unknown } | { readonly fault: string };

export interface ParseOptions {
  /** Memory that this process may use. Default: the limit of the control group, or the memory of the machine. */
  readonly memoryBytes?: number | undefined;
  /** Ends the thread. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The value of a document. Throws the reason of the signal, or an Error whose message names the fault, without text of the
 * document.
 */
export async function parseYaml(text: string, options: ParseOptions = {}): Promise<unknown> {
  const answer = text.length > LONG_TEXT ? await parseInThread(text, options) : yamlAnswer(text);
  if ('fault' in answer) throw new Error(answer.fault);
  return answer.value;
}

/** Parses in this thread. */
export function yamlAnswer(text: string): YamlAnswer {
  try {
    return { value: readYaml(text).value };
  } catch (thrown) {
    return { fault: messageOf(thrown) };
  }
}

/** Throws when the thread needs too much memory. */
async function parseInThread(
  text: string,
  { memoryBytes = availableMemoryBytes(), signal }: ParseOptions,
): Promise<YamlAnswer> {
  signal?.throwIfAborted();
  // The program of a package has its modules in one folder: ADR 286.
  const module = new URL(`./yaml-thread${extname(import.meta.url)}`, import.meta.url);
  const mib = Math.min(MAX_THREAD_MIB, Math.floor((memoryBytes * THREAD_SHARE) / 2 ** 20));
  const youngMib = Math.ceil(mib * YOUNG_SHARE);
  const { promise, resolve, reject } = Promise.withResolvers<YamlAnswer>();
  const thread = new Worker(module, {
    workerData: text,
    resourceLimits: { maxYoungGenerationSizeMb: youngMib, maxOldGenerationSizeMb: mib - youngMib },
  });
  const abort = () => reject(signal?.reason);
  signal?.addEventListener('abort', abort);
  thread.on('message', resolve);
  thread.on('error', (thrown) => {
    const hint = 'look for a mistake, or write it in JSON';
    const isTooLong = codeOf(thrown) === 'ERR_WORKER_OUT_OF_MEMORY';
    reject(
      isTooLong ? new Error(`its parser needs more than ${mib} MiB: ${hint}`, { cause: thrown }) : thrown,
    );
  });
  thread.on('exit', () => reject(new Error('the parser ended without an answer')));
  try {
    return await promise;
  } finally {
    signal?.removeEventListener('abort', abort);
    await thread.terminate();
  }
}
