// Finds tools by words: BM25 over names, titles, descriptions and arguments.

import { isJsonObject, type JsonObject } from '../../domain/json/json.ts';
import { FairSlots } from '../../domain/time/fair-slots.ts';
import type { TaskScheduler, Timing } from '../../domain/time/task-scheduler.ts';
import { tokensOf, type Word, wordsOf } from './search-words.ts';
import { BYTES_PER_POSTING, type Field, INDEXED_FIELDS, type Postings, TokenCounts } from './token-counts.ts';
import { Vocabulary } from './vocabulary.ts';

/** A tool that can be found. `name`: as it is listed. `own`: at its server. */
export interface FindableTool {
  readonly name: string;
  readonly own: string;
  readonly server: string;
  readonly definition: JsonObject;
}

/** The caller of a search. Default: all are one caller, which does not leave. */
interface Searcher {
  readonly ownerId?: string;
  readonly signal?: AbortSignal | undefined;
}

/** Weight of a word that has concepts, compared with one that has none. */
const WORD_WEIGHT = 0.6;
/** Weight of one of the concepts of a word; each has less when they are many. */
const CONCEPT_WEIGHT = 0.8;
const CONCEPT_EXPONENT = 0.3;
/** A word that no tool has counts as the words that begin like it: the least share of the longer word, and the weight. */
const LIKE_SHARE = 0.6;
const LIKE_WEIGHT = 0.6;
/** The exponent by which a tool that matches many words of the query counts more. */
const MATCHES_EXPONENT = 2;
/** Tools of a server that the query names count so many times as much. */
const NAMED_SERVER_FACTOR = 3;
/** Words of a query that count; further ones are ignored. */
const MAX_WORDS = 32;
/** Units of a query and of each field of a definition, and arguments, that are read. */
const MAX_TEXT_UNITS = 4_096;
const MAX_ARGUMENTS = 100;
/**
 * The most that an index holds: units of one field of all definitions, and tokens of all fields. Every tool has an equal share of
 * both, or the least.
 */
const MAX_UNITS = 8_000_000;
const MAX_TOKENS = 2_000_000;
const MIN_UNITS = 64;
const MIN_TOKENS = 8;

/**
 * The index of one set of tools, which does not change. It knows neither templates nor permissions: an index has the
 * tools that may be found. Loaded with the first search. Source: ADR 237.
 */
export class ToolIndex {
  /** The names of the tools, by number of the tool. */
  readonly #names: readonly string[];
  /** The words of the name of each tool's server. */
  readonly #servers: readonly (readonly string[])[];
  readonly #vocabulary: Vocabulary;
  readonly #postings: Postings;
  readonly #scheduler: TaskScheduler;
  readonly #searches: FairSlots;
  /** Totals of the search under way, by number of the tool. */
  readonly #totals: Float64Array;
  readonly #matches: Uint8Array;
  readonly #ofWord: Float64Array;

  private constructor(
    names: readonly string[],
    servers: readonly (readonly string[])[],
    vocabulary: Vocabulary,
    postings: Postings,
    timing: Timing,
  ) {
    this.#names = names;
    this.#servers = servers;
    this.#vocabulary = vocabulary;
    this.#postings = postings;
    this.#scheduler = timing.scheduler;
    this.#searches = new FairSlots({ atOnce: 1, atOncePerShare: 1, ...timing });
    this.#totals = new Float64Array(names.length);
    this.#matches = new Uint8Array(names.length);
    this.#ofWord = new Float64Array(names.length);
  }

  /** Reads the tools in several turns of the event loop. Their order does not matter. */
  static async of(tools: readonly FindableTool[], timing: Timing): Promise<ToolIndex> {
    const { scheduler } = timing;
    const share = (all: number, least: number) => Math.max(least, Math.floor(all / tools.length));
    const units = Math.min(MAX_TEXT_UNITS, share(MAX_UNITS, MIN_UNITS));
    const vocabulary = new Vocabulary();
    const counts = new TokenCounts(tools.length, share(MAX_TOKENS, MIN_TOKENS));
    const servers = new Map<string, readonly string[]>();
    await scheduler.each(tools.entries(), ([number, tool]) => {
      const fields = fieldsOf(tool, units);
      for (const [index, field] of INDEXED_FIELDS.entries())
        counts.add(number, index, tokensOf(fields[field]), vocabulary);
      if (servers.has(tool.server)) return;
      servers.set(
        tool.server,
        wordsOf(tool.server).flatMap(({ stem }) => stem ?? []),
      );
    });
    return new ToolIndex(
      tools.map(({ name }) => name),
      tools.map(({ server }) => servers.get(server) ?? []),
      vocabulary,
      await counts.postings(vocabulary.size, scheduler),
      timing,
    );
  }

  /** The bytes that it takes in memory, about. */
  get bytes(): number {
    return this.#vocabulary.bytes + this.#postings.tools.length * BYTES_PER_POSTING;
  }

  /**
   * Names of at most `limit` tools, best first; equal ones in the order of their names. Each word of the query
   * counts by the best of its meanings, and a tool that matches in many words more than one that matches well in a
   * single one. One search after the other, each word in a task of its own; callers take turns. Throws when `signal` is
   * aborted.
   */
  find(query: string, limit: number, { ownerId, signal }: Searcher = {}): Promise<string[]> {
    const start = async () => {
      const words = wordsOf(query.slice(0, MAX_TEXT_UNITS)).slice(0, MAX_WORDS);
      this.#totals.fill(0);
      this.#matches.fill(0);
      const counted = new Set<string>();
      await this.#scheduler.each(words, (word) => this.#count(word, counted));
      return this.#best(limit, counted);
    };
    return this.#searches.take({ shareId: ownerId, ...(signal && { signal }), start });
  }

  #best(limit: number, counted: ReadonlySet<string>): string[] {
    const [totals, matches] = [this.#totals, this.#matches];
    const best: FoundTool[] = [];
    for (let number = 0; number < totals.length; number++) {
      if (matches[number] === 0) continue;
      const server = this.#servers[number] ?? [];
      const isNamed = server.length > 0 && server.every((word) => counted.has(word));
      const score =
        (totals[number] ?? 0) *
        (matches[number] ?? 0) ** MATCHES_EXPONENT *
        (isNamed ? NAMED_SERVER_FACTOR : 1);
      const found = { name: this.#names[number] ?? '', score };
      const last = best.at(-1);
      if (last !== undefined && best.length === limit && !isBetter(found, last)) continue;
      const index = best.findIndex((other) => isBetter(found, other));
      best.splice(index === -1 ? best.length : index, 0, found);
      if (best.length > limit) best.pop();
    }
    return best.map(({ name }) => name);
  }

  /** Adds one word to the totals, unless an earlier one meant the same. */
  #count({ stem, concepts }: Word, counted: Set<string>): void {
    const ofWord = this.#ofWord;
    const { begins, tools, scores } = this.#postings;
    const touched: number[] = [];
    const count = (token: string, weight: number) => {
      if (counted.size === counted.add(token).size) return;
      const known = this.#vocabulary.numberOf(token);
      if (known === undefined) return;
      const end = begins[known + 1] as number;
      for (let at = begins[known] as number; at < end; at++) {
        const number = tools[at] as number;
        const [before, score] = [ofWord[number] as number, weight * (scores[at] as number)];
        if (before === 0) touched.push(number);
        if (score > before) ofWord[number] = score;
      }
    };
    if (stem !== undefined) count(stem, concepts.length > 0 ? WORD_WEIGHT : 1);
    if (stem !== undefined && concepts.length === 0 && this.#vocabulary.numberOf(stem) === undefined)
      for (const [token, weight] of this.#wordsLike(stem)) count(token, weight);
    for (const concept of concepts) count(concept, CONCEPT_WEIGHT / concepts.length ** CONCEPT_EXPONENT);
    for (const number of touched) {
      this.#totals[number] = (this.#totals[number] as number) + (ofWord[number] as number);
      this.#matches[number] = (this.#matches[number] as number) + 1;
      ofWord[number] = 0;
    }
  }

  /** Words of the tools that begin like one that no tool has, as `deploy` and `deployer` do. */
  #wordsLike(stem: string): (readonly [token: string, weight: number])[] {
    return this.#vocabulary.beginningLike(stem).flatMap((token) => {
      const share = sharedLetters(token, stem) / Math.max(token.length, stem.length);
      return share < LIKE_SHARE ? [] : [[token, LIKE_WEIGHT * share] as const];
    });
  }
}

interface FoundTool {
  readonly name: string;
  readonly score: number;
}

function isBetter(one: FoundTool, other: FoundTool): boolean {
  return one.score > other.score || (one.score === other.score && one.name < other.name);
}

function sharedLetters(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

/** The texts of a tool, by field, at most `units` of each. */
function fieldsOf({ own, server, definition }: FindableTool, units: number): Record<Field, string> {
  const textOf = (value: unknown) => (typeof value === 'string' ? value.slice(0, units) : '');
  const { title, annotations, description, inputSchema } = definition;
  const properties = isJsonObject(inputSchema) ? inputSchema.properties : undefined;
  const args = isJsonObject(properties) ? Object.entries(properties).slice(0, MAX_ARGUMENTS) : [];
  return {
    own: textOf(own),
    server: textOf(server),
    title: textOf(title ?? (isJsonObject(annotations) ? annotations.title : undefined)),
    description: textOf(description),
    args: textOf(args.map(([key]) => textOf(key)).join(' ')),
    argTexts: textOf(
      args.map(([, schema]) => textOf(isJsonObject(schema) ? schema.description : undefined)).join(' '),
    ),
  };
}
