// Finds tools by words: BM25 over names, titles, descriptions and arguments. It knows neither templates nor permissions: an index has
// the tools that may be found. Loaded with the first search. Source: ADR 237.

import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import { isConcept, tokensOf, type Word, wordsOf } from './search-words.ts';

/** A tool that can be found. `name`: as it is listed. `own`: at its server. */
export interface FindableTool {
  readonly name: string;
  readonly own: string;
  readonly server: string;
  readonly definition: JsonObject;
}

/** TABLE of the parts of a definition with their weights. All weights were adjusted with one half of the labelled set. */
const WEIGHTS = { own: 8, title: 1, server: 6, description: 3, args: 0.2, argTexts: 0.4 };
/** Of a word that has concepts, compared with one that has none. */
const WORD_WEIGHT = 0.6;
/** Of one of the concepts of a word; each has less when they are many. */
const CONCEPT_WEIGHT = 0.8;
const CONCEPT_EXPONENT = 0.3;
/** A word that is nowhere counts as those that begin like it: shared letters, the least share of the longer word, and the weight. */
const LIKE_LETTERS = 4;
const LIKE_SHARE = 0.6;
const LIKE_WEIGHT = 0.6;
/** How much more a tool counts that matches in many words of the query. */
const MATCHES_EXPONENT = 2;
/** Tools of a server that the query names count so many times as much. */
const NAMED_SERVER_FACTOR = 3;
/** BM25+: how soon repetitions stop counting, how much the length of a text does, and the least for a text with the word. */
const SATURATION = 1.2;
const LENGTH_SHARE = 0.7;
const LEAST = 0.5;
/** Words of a query that count; further ones are ignored. */
const MAX_WORDS = 32;
/** Units of a query and of each text of a definition, and arguments, that are read. */
const MAX_TEXT_UNITS = 4_096;
const MAX_ARGUMENTS = 100;

type Part = keyof typeof WEIGHTS;
const PARTS = Object.keys(WEIGHTS) as Part[];

/** Tools by number, and what a token adds to the score of each. */
interface Postings {
  readonly tools: Uint32Array;
  readonly scores: Float32Array;
}

export class ToolIndex {
  /** In the order of the names, which makes the numbers of tools, and scores, the same on every node. */
  readonly #names: readonly string[];
  readonly #postings: ReadonlyMap<string, Postings>;
  /** Words by their first letters. */
  readonly #words: ReadonlyMap<string, readonly string[]>;
  /** The words of the name of each tool's server. */
  readonly #servers: readonly (readonly string[])[];
  /** Of the search under way, by number of the tool. */
  readonly #totals: Float64Array;
  readonly #matches: Uint8Array;
  readonly #ofWord: Float64Array;

  private constructor(
    names: readonly string[],
    servers: readonly (readonly string[])[],
    postings: ReadonlyMap<string, Postings>,
  ) {
    this.#names = names;
    this.#servers = servers;
    this.#postings = postings;
    this.#words = Map.groupBy(
      [...postings.keys()].filter((token) => token.length >= LIKE_LETTERS && !isConcept(token)),
      beginningOf,
    );
    this.#totals = new Float64Array(names.length);
    this.#matches = new Uint8Array(names.length);
    this.#ofWord = new Float64Array(names.length);
  }

  /** Reads the tools in several turns of the event loop. Their order does not matter. */
  static async of(
    tools: readonly FindableTool[],
    scheduler: Pick<TaskScheduler, 'each'>,
  ): Promise<ToolIndex> {
    const sorted = [...tools].sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
    const texts = Object.fromEntries(PARTS.map((part) => [part, new IndexedPart()])) as Record<
      Part,
      IndexedPart
    >;
    const servers = new Map<string, readonly string[]>();
    await scheduler.each([...sorted.keys()], (number) => {
      const tool = sorted[number] as FindableTool;
      const parts = partsOf(tool);
      for (const part of PARTS) texts[part].add(number, tokensOf(parts[part]));
      if (!servers.has(tool.server))
        servers.set(
          tool.server,
          wordsOf(tool.server).flatMap(({ stem }) => stem ?? []),
        );
    });
    const scores = new Map<string, Map<number, number>>();
    await scheduler.each(PARTS, (part) => texts[part].score(sorted.length, WEIGHTS[part], scores));
    const postings = new Map<string, Postings>();
    for (const [token, byTool] of scores)
      postings.set(token, {
        tools: Uint32Array.from(byTool.keys()),
        scores: Float32Array.from(byTool.values()),
      });
    return new ToolIndex(
      sorted.map(({ name }) => name),
      sorted.map(({ server }) => servers.get(server) ?? []),
      postings,
    );
  }

  /**
   * Names of at most `limit` tools, best first; equal ones in the order of their names. Each word of the query counts by the best of
   * its meanings, and a tool that matches in many words more than one that matches well in a single one.
   */
  find(query: string, limit: number): string[] {
    const words = wordsOf(query.slice(0, MAX_TEXT_UNITS)).slice(0, MAX_WORDS);
    const [totals, matches] = [this.#totals.fill(0), this.#matches.fill(0)];
    const counted = new Set<string>();
    for (const word of words) this.#count(word, counted);
    const best: { readonly number: number; readonly score: number }[] = [];
    for (let number = 0; number < totals.length; number++) {
      if (matches[number] === 0) continue;
      const server = this.#servers[number] ?? [];
      const isNamed = server.length > 0 && server.every((word) => counted.has(word));
      const score =
        (totals[number] ?? 0) *
        (matches[number] ?? 0) ** MATCHES_EXPONENT *
        (isNamed ? NAMED_SERVER_FACTOR : 1);
      if (best.length === limit && score <= (best.at(-1)?.score ?? 0)) continue;
      const place = best.findIndex((other) => other.score < score);
      best.splice(place === -1 ? best.length : place, 0, { number, score });
      if (best.length > limit) best.pop();
    }
    return best.map(({ number }) => this.#names[number] ?? '');
  }

  /** Adds one word to the totals, unless an earlier one meant the same. */
  #count({ stem, concepts }: Word, counted: Set<string>): void {
    const ofWord = this.#ofWord;
    const touched: number[] = [];
    const count = (token: string, weight: number) => {
      if (counted.size === counted.add(token).size) return;
      const { tools, scores } = this.#postings.get(token) ?? NO_POSTINGS;
      for (let at = 0; at < tools.length; at++) {
        const number = tools[at] as number;
        const [known, score] = [ofWord[number] as number, weight * (scores[at] as number)];
        if (known === 0) touched.push(number);
        if (score > known) ofWord[number] = score;
      }
    };
    if (stem !== undefined) count(stem, concepts.length > 0 ? WORD_WEIGHT : 1);
    if (stem !== undefined && concepts.length === 0 && !this.#postings.has(stem))
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
    if (stem.length < LIKE_LETTERS) return [];
    return (this.#words.get(beginningOf(stem)) ?? []).flatMap((token) => {
      const share = sharedLetters(token, stem) / Math.max(token.length, stem.length);
      return share < LIKE_SHARE ? [] : [[token, LIKE_WEIGHT * share] as const];
    });
  }
}

function beginningOf(word: string): string {
  return word.slice(0, LIKE_LETTERS);
}

function sharedLetters(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

const NO_POSTINGS: Postings = { tools: new Uint32Array(), scores: new Float32Array() };

/** One part of all definitions while they are read. */
class IndexedPart {
  /** By token: how often each tool has it. */
  readonly #counts = new Map<string, Map<number, number>>();
  readonly #lengths = new Map<number, number>();
  #length = 0;

  add(number: number, tokens: readonly string[]): void {
    if (tokens.length === 0) return;
    this.#lengths.set(number, tokens.length);
    this.#length += tokens.length;
    for (const token of tokens) {
      const counts = this.#counts.get(token) ?? new Map<number, number>();
      this.#counts.set(token, counts.set(number, (counts.get(number) ?? 0) + 1));
    }
  }

  /** Adds what this part contributes. `size`: number of all tools. */
  score(size: number, weight: number, scores: Map<string, Map<number, number>>): void {
    const average = this.#length / size;
    for (const [token, counts] of this.#counts) {
      const rarity = Math.log(1 + (size - counts.size + 0.5) / (counts.size + 0.5));
      const known = scores.get(token) ?? new Map<number, number>();
      for (const [number, count] of counts) {
        const length = (this.#lengths.get(number) ?? 0) / average;
        const share =
          (count * (SATURATION + 1)) / (count + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length));
        known.set(number, (known.get(number) ?? 0) + weight * rarity * (LEAST + share));
      }
      scores.set(token, known);
    }
  }
}

function partsOf({ own, server, definition }: FindableTool): Record<Part, string> {
  const { title, annotations, description, inputSchema } = definition;
  const properties = isJsonObject(inputSchema) ? inputSchema.properties : undefined;
  const args = isJsonObject(properties) ? Object.entries(properties).slice(0, MAX_ARGUMENTS) : [];
  return {
    own: textOf(own),
    server: textOf(server),
    title: textOf(title ?? (isJsonObject(annotations) ? annotations.title : undefined)),
    description: textOf(description),
    args: args.map(([key]) => textOf(key)).join(' '),
    argTexts: args
      .map(([, schema]) => textOf(isJsonObject(schema) ? schema.description : undefined))
      .join(' '),
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_TEXT_UNITS) : '';
}
