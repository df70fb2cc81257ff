// The labelled set of the search for tools: tools of many servers, and queries with the tools that answer them. It was made and
// committed before the search, and split by the digest of the query: the search was adjusted on one half and judged on both.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../../src/domain/json/json.ts';

const DIRECTORY = join(import.meta.dirname, '../../fixtures/tool-search');

export type LabelledTool = JsonObject & {
  name: string;
  title?: string;
  description: string;
  inputSchema: { type: 'object'; properties: Record<string, { description: string }> };
};

export interface LabelledServer {
  readonly server: string;
  readonly tools: readonly LabelledTool[];
}

/** `tools`: `<server>/<tool>`, each of them right. `words`: `user` when no word of the query's content is in the text of these tools. */
export interface LabelledQuery {
  readonly query: string;
  readonly tools: readonly string[];
  readonly words: 'tool' | 'user';
}

/** The servers by name. */
export function labelledServers(): LabelledServer[] {
  const files = readdirSync(join(DIRECTORY, 'servers')).sort();
  return files.map((file) => JSON.parse(readFileSync(join(DIRECTORY, 'servers', file), 'utf8')));
}

export function labelledQueries(): LabelledQuery[] {
  return JSON.parse(readFileSync(join(DIRECTORY, 'queries.json'), 'utf8'));
}

/** Whether the search may be adjusted on this query; the others are only for judging it. */
export function isForTuning({ query }: LabelledQuery): boolean {
  const [first = 0] = createHash('sha256').update(query).digest();
  return first < 128;
}
