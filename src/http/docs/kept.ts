// A document that is kept in memory and revalidated by its ETag: the API description, its pages, and the files of the console.

import { createHash } from 'node:crypto';
import { type BytesReply, bytes, type EmptyReply } from '../reply.ts';

export interface KeptDocument {
  readonly bytes: Buffer;
  /** Media type. */
  readonly type: string;
  readonly etag: string;
  /** As `[name, value, …]`, with the ETag. */
  readonly headers: readonly string[];
}

export function keptDocument(content: Buffer, type: string, headers: readonly string[]): KeptDocument {
  const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
  return { bytes: content, type, etag, headers: [...headers, 'ETag', etag] };
}

/** `known` is the `If-None-Match` header; a matching one is answered 304. */
export function replyWith(document: KeptDocument, known: string | undefined): BytesReply | EmptyReply {
  const { headers, etag } = document;
  if (known !== undefined && matches(etag, known)) return { kind: 'empty', status: 304, headers };
  return { ...bytes(200, document.bytes, { headers }), type: document.type };
}

/** A weak tag matches, too: proxies that compress make tags weak. Source: RFC 9110 section 13.1.2. */
function matches(etag: string, known: string): boolean {
  return known.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}
