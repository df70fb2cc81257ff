// A document that is kept in memory and revalidated by its ETag: the API description, its pages, and the files of the console.

import { createHash } from 'node:crypto';
import { type BytesReply, bytes, type EmptyReply } from '../reply.ts';

/** Header of a document that is revalidated on each use, because an upgrade may change it. */
export const REVALIDATED: readonly string[] = ['Cache-Control', 'no-cache'];

export interface CachedDocument {
  readonly bytes: Buffer;
  readonly type: string;
  readonly etag: string;
  /** As `[name, value, …]`, with the ETag. */
  readonly headers: readonly string[];
}

export function cachedDocument(content: Buffer, type: string, headers: readonly string[]): CachedDocument {
  const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
  return { bytes: content, type, etag, headers: [...headers, 'ETag', etag] };
}

/** Answers 304 when the `If-None-Match` header names the document. */
export function documentReply(
  { bytes: content, type, etag, headers }: CachedDocument,
  ifNoneMatch: string | undefined,
): BytesReply | EmptyReply {
  if (ifNoneMatch !== undefined && matches(etag, ifNoneMatch)) return { kind: 'empty', status: 304, headers };
  return { ...bytes(200, content, { headers }), type };
}

/** A weak tag matches, too: proxies that compress make tags weak. Source: RFC 9110 section 13.1.2. */
function matches(etag: string, ifNoneMatch: string): boolean {
  return ifNoneMatch.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}

/** Makes the value of a key at the first request for it. A failure is not kept: a missing file can be built or installed. */
export function makeOnce<T>(): (key: string, make: () => Promise<T>) => Promise<T> {
  const values = new Map<string, Promise<T>>();
  return (key, make) => {
    const value = values.get(key) ?? make();
    values.set(key, value);
    value.catch(() => values.delete(key));
    return value;
  };
}
