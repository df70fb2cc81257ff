// A provider knows its sources and how to query them. The table of providers is in gateway/sync.ts.

import type { Listing } from '../domain/deployment.ts';

/** The fields of a template's definition about the way to its deployments. */
export interface TemplateHints {
  readonly ports?: readonly number[] | undefined;
  readonly command?: string | undefined;
  readonly args?: readonly string[] | undefined;
  readonly transport?: 'http' | 'sse' | 'stdio' | undefined;
}

/** The environment in which sources are searched. */
export interface DiscoveryContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Of a template; undefined when it has no definition. */
  readonly hintsOf: (template: string) => TemplateHints | undefined;
  /** Kubernetes namespace to search; `*` for all. */
  readonly namespace: string;
  /** Ends every request to the sources, and every connection, also those that are still being made. */
  readonly signal: AbortSignal;
}

export interface SourceChange {
  /** Container that has ended; absent: something else is different, and the source is to be listed again. */
  readonly ended?: string;
}

export interface Source {
  /** For people: `unix:///run/podman/podman.sock`. No credentials. */
  readonly address: string;
  readonly origin: string;
  /** Rejects with a SourceError when the source does not answer. */
  list(): Promise<Listing>;
  /** Reports changes until the signal of the context aborts; `onOpen` is called once no change from then on is missed. Rejects
   *  with a SourceError when the source is lost. */
  watch(onChange: (change: SourceChange) => void, onOpen: () => void): Promise<void>;
}

/**
 * The sources of one kind that are configured here, or whose default place exists. Rejects with a SourceError for a setting that
 * cannot be used.
 */
export type Provider = (context: DiscoveryContext) => Promise<readonly Source[]>;

/** A source that cannot be used; its message is one line with the address. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/** The lines of a stream as they come, without empty ones and without one that has no end. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield line;
  }
}
