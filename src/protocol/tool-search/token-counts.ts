// The counts of tokens in the fields of definitions, and the share that a token adds to the score of a tool: BM25+.

import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { Vocabulary } from './vocabulary.ts';

/** TABLE of the fields of a definition with their weights. All weights were adjusted with one half of the labelled set. */
const WEIGHTS = { own: 8, title: 1, server: 6, description: 3, args: 0.2, argTexts: 0.4 };
export type Field = keyof typeof WEIGHTS;
export const INDEXED_FIELDS = Object.keys(WEIGHTS) as Field[];
const WEIGHT_OF = Object.values(WEIGHTS);
/**
 * The parameters of BM25+: how soon repetitions stop counting, how much the length of a text counts, and the least share of a
 * text with the word.
 */
const SATURATION = 1.2;
const LENGTH_SHARE = 0.7;
const LEAST = 0.5;

/** Counts, or tokens, that are read in one task. */
const BLOCK = 16_384;
const MAX_COUNT = 0xffff;

/**
 * The tools that have a token, and the share that it adds to the score of each: those of token n are at `begins[n]` to `begins[n
 * + 1]`.
 */
export interface Postings {
  readonly begins: Uint32Array;
  readonly tools: Uint32Array;
  readonly scores: Float32Array;
}

/** Memory of a tool and its score. */
export const BYTES_PER_POSTING = 8;

/** A part of the counts: for each its token, tool and field, and the number. A short list has one block, of 180 kB. */
class CountBlock {
  readonly tokens = new Uint32Array(BLOCK);
  readonly tools = new Uint32Array(BLOCK);
  readonly fields = new Uint8Array(BLOCK);
  readonly counts = new Uint16Array(BLOCK);

  set(at: number, token: number, tool: number, field: number, count: number): void {
    this.tokens[at] = token;
    this.tools[at] = tool;
    this.fields[at] = field;
    this.counts[at] = count;
  }
}

/**
 * The counts of one index, to which tools are added one after the other. Numbers in arrays, since thousands of tools
 * have millions of them.
 */
export class TokenCounts {
  readonly #toolCount: number;
  readonly #tokensPerTool: number;
  /** The counts, one after the other, those of a tool in a row. */
  readonly #blocks: CountBlock[] = [];
  #size = 0;
  /** The index at which the counts of the last tool begin. */
  #begin = 0;
  /** Tokens of each field of each tool, and of each field of all. */
  readonly #lengths: Uint32Array;
  readonly #totals = INDEXED_FIELDS.map(() => 0);

  /** `tokensPerTool`: different ones in all fields of one tool; further ones are ignored. */
  constructor(toolCount: number, tokensPerTool: number) {
    this.#toolCount = toolCount;
    this.#tokensPerTool = tokensPerTool;
    this.#lengths = new Uint32Array(toolCount * INDEXED_FIELDS.length);
  }

  /** The tools in the order of their numbers, and the fields of each in theirs. */
  add(tool: number, field: number, tokens: readonly string[], vocabulary: Vocabulary): void {
    if (field === 0) this.#begin = this.#size;
    this.#lengths[tool * INDEXED_FIELDS.length + field] = tokens.length;
    this.#totals[field] = (this.#totals[field] ?? 0) + tokens.length;
    const counts = new Map<string, number>();
    for (const token of tokens) counts.set(token, (counts.get(token) ?? 0) + 1);
    for (const [token, count] of counts) {
      if (this.#size - this.#begin === this.#tokensPerTool) return;
      const at = this.#size % BLOCK;
      if (at === 0) this.#blocks.push(new CountBlock());
      this.#blocks.at(-1)?.set(at, vocabulary.numbered(token), tool, field, Math.min(count, MAX_COUNT));
      this.#size += 1;
    }
  }

  /** The tools that have each token, made in several turns of the event loop. `tokenCount`: the tokens of the vocabulary. */
  async postings(tokenCount: number, scheduler: TaskScheduler): Promise<Postings> {
    /**
     * The number of tools that have a token in a field, by field and token; then the number of tools that have it, by token.
     */
    const having = new Uint32Array(INDEXED_FIELDS.length * tokenCount);
    const begins = new Uint32Array(tokenCount + 1);
    /** The last tool that was read with a token, plus 1; by token. */
    const last = new Uint32Array(tokenCount);
    await this.#eachCount(scheduler, (token, tool, field) => {
      increase(having, field * tokenCount + token);
      if (last[token] === tool + 1) return;
      last[token] = tool + 1;
      increase(begins, token + 1);
    });
    await inBlocks(scheduler, tokenCount, (token) => increase(begins, token + 1, begins[token]));
    const tools = new Uint32Array(begins[tokenCount] as number);
    const scores = new Float32Array(tools.length);
    const ends = begins.slice();
    last.fill(0);
    await this.#eachCount(scheduler, (token, tool, field, count) => {
      if (last[token] !== tool + 1) {
        last[token] = tool + 1;
        tools[ends[token] as number] = tool;
        increase(ends, token);
      }
      const rarity = this.#rarityOf(having[field * tokenCount + token] as number);
      increase(scores, (ends[token] as number) - 1, rarity * this.#shareOf(tool, field, count));
    });
    return { begins, tools, scores };
  }

  #eachCount(
    scheduler: TaskScheduler,
    visit: (token: number, tool: number, field: number, count: number) => void,
  ): Promise<void> {
    return scheduler.each(this.#blocks.entries(), ([number, { tokens, tools, fields, counts }]) => {
      const size = Math.min(BLOCK, this.#size - number * BLOCK);
      for (let at = 0; at < size; at++)
        visit(tokens[at] as number, tools[at] as number, fields[at] as number, counts[at] as number);
    });
  }

  /** The rarity of a token that so many tools have. */
  #rarityOf(having: number): number {
    return Math.log(1 + (this.#toolCount - having + 0.5) / (having + 0.5));
  }

  /** The share that a token of this rarity adds when a field has it so often. */
  #shareOf(tool: number, field: number, count: number): number {
    const average = (this.#totals[field] as number) / this.#toolCount;
    const length = (this.#lengths[tool * INDEXED_FIELDS.length + field] as number) / average;
    const share =
      (count * (SATURATION + 1)) / (count + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length));
    return (WEIGHT_OF[field] as number) * (LEAST + share);
  }
}

function increase(values: Uint32Array | Float32Array, at: number, by = 1): void {
  values[at] = (values[at] as number) + by;
}

function inBlocks(scheduler: TaskScheduler, length: number, visit: (at: number) => void): Promise<void> {
  return scheduler.each(blocks(length), ([from, to]) => {
    for (let at = from; at < to; at++) visit(at);
  });
}

function* blocks(length: number): Generator<readonly [from: number, to: number]> {
  for (let from = 0; from < length; from += BLOCK) yield [from, Math.min(length, from + BLOCK)];
}
