// Tools that the lists of one backend come without, because nobody may call them: which of them were told already. A list
// comes again and again; what is wrong with a tool is told once, and again when it is something else, or was right meanwhile.

import { hash } from 'node:crypto';
import { type Observable, Subject } from 'rxjs';
import { cutText } from '../../domain/text.ts';
import type { OmittedTool } from '../transport.ts';

/**
 * Tools of one instance that are told at a time. There is no line for the others until some of these are right: forgetting
 * one for another would tell all of them with every list.
 */
export const MOST_TOLD = 100;
/** Longest name that is told; of a longer one its beginning is. In UTF-16 units. */
export const NAME_UNITS = 256;

/** Those of one backend. */
export class OmittedTools {
  /** Why, by the name. */
  readonly #told: Map<string, string>;
  readonly #news = new Subject<OmittedTool>();

  /** `told` is read and changed: who keeps it from one opening to the next is not told the same again. */
  constructor(told: Map<string, string> = new Map()) {
    this.#told = told;
  }

  /** Hot, no replay. */
  get news$(): Observable<OmittedTool> {
    return this.#news;
  }

  /** A list came without the tool. */
  omit(name: string, reason: string): void {
    const key = keyOf(name);
    const before = this.#told.get(key);
    if (before === reason || (before === undefined && this.#told.size >= MOST_TOLD)) return;
    this.#told.set(key, reason);
    this.#news.next({ tool: cutText(name, NAME_UNITS), reason });
  }

  /** A list came with the tool. */
  allow(name: string): void {
    if (this.#told.size > 0) this.#told.delete(keyOf(name));
  }
}

/** Two that begin alike are two. */
function keyOf(name: string): string {
  return name.length > NAME_UNITS ? hash('sha256', name) : name;
}
