// A provider finds its sources and queries them. gateway/sync.ts has the table of providers.

import type { SourceListing } from '../domain/instances/found-instances.ts';
import type { InstanceInput } from '../domain/instances/instance.ts';
import { cutText } from '../domain/text.ts';

/** The fields of a template's definition that tell how to reach what was found for it. */
export interface TemplateHints extends Pick<InstanceInput, 'command' | 'args' | 'transport'> {
  readonly ports?: readonly number[];
}

/** The credential that a client shows to the API server of a cluster. Certificate and key are PEM. */
export interface Credential {
  readonly token?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

export interface Login {
  /** The credential; when the server no longer accepts `refused`, another one. Throws SourceError when there is none. */
  readonly credential: (refused?: Credential) => Promise<Credential>;
}

/** The environment in which sources are searched. */
export interface DiscoveryContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The hints of a template; undefined when it has no definition. */
  readonly hintsOf: (template: string) => TemplateHints | undefined;
  /** The Kubernetes namespace to search; `*` for all. */
  readonly namespace: string;
  /** The logins of kubeconfigs, kept from one search to the next. */
  readonly logins: Map<string, Login>;
  /** Ends every request and connection to the sources, including connections that are still being opened. */
  readonly signal: AbortSignal;
}

export type OnChange = (endedContainer?: string) => void;

export interface Source {
  /** The address for display, without credentials: `unix:///run/podman/podman.sock`. */
  readonly address: string;
  /** The engine or cluster, and after a `/` the namespace, if it has any. */
  readonly origin: string;
  /** Lists the instances of the source. Throws a SourceError when it does not answer. */
  list(): Promise<SourceListing>;
  /**
   * Reports changes until the signal of the context aborts, with the id of a container that ended; the source must
   * be listed again after each. Calls `onOpen` once no further change can be missed. Resolves earlier when changes
   * may have been missed, and must be called again then. Throws a SourceError when the source is lost.
   */
  watch(onChange: OnChange, onOpen: () => void): Promise<void>;
}

/**
 * The sources of one kind that are configured here, or that exist at a default address. Throws a
 * SourceError for an invalid setting.
 */
export type Provider = (context: DiscoveryContext) => Promise<readonly Source[]>;

/** An unusable source. The message is one line with its address, of at most 400 characters: sources may answer with any text. */
export class SourceError extends Error {
  override readonly name = 'SourceError';

  constructor(message: string, options?: ErrorOptions) {
    super(cutText(message.replace(/\s+/g, ' '), 400), options);
  }
}

/** The most characters of a line: an object of a cluster has at most 1.5 MB. */
const MAX_LINE = 8 * 2 ** 20;

/**
 * The lines of a stream as they arrive, without empty ones and without an unfinished last one. Throws SourceError for a line that
 * is too long.
 */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const end = text.lastIndexOf('\n') + 1;
    // A long line comes in thousands of chunks: what has come of it is not searched again.
    const lines = end === 0 ? [] : (rest + text.slice(0, end)).split('\n');
    rest = end === 0 ? rest + text : text.slice(end);
    if (rest.length > MAX_LINE)
      throw new SourceError(`a line of its answer has more than ${MAX_LINE / 2 ** 20} MiB`);
    for (const line of lines) if (line.trim() !== '') yield line;
  }
}
