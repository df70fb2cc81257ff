// The templates that an aggregate serves: all that a caller may use, or those of one view.

import type { Observable } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { Owner } from '../../domain/mcp/client.ts';
import type { ListField } from '../../domain/mcp/mcp.ts';
import type { AggregatePresentation, ViewLimit } from '../../domain/views/view.ts';
import type { Directory } from './lists/directory.ts';

export interface Selection {
  /** The id of the view; undefined for all templates. */
  readonly view: string | undefined;
  readonly directory: Directory;
  /** The templates that the owner may use, in their order. */
  templates(owner: Owner): readonly string[];
  /** True when the caller gets the changes of this template, which may be gone. */
  includes(owner: Owner, template: string): boolean;
  /**
   * For a request that arrives now: a function that is true while the view, if it changes meanwhile, has what the request names,
   * by the names of the template. Default: always.
   */
  untilLost?(): (template: string, request: ExchangeRequest) => boolean;
  /** Hot: lists that changed because the selection did. */
  readonly changed$: Observable<ListField>;
  limitOf?(listed: string): ViewLimit | undefined;
  /**
   * Counts a call of a listed tool, of which so many a minute are allowed. A promise where other nodes count, too.
   * Throws RATE_LIMIT_EXCEEDED.
   */
  countCall?(listed: string, owner: Owner, most: number): Promise<void> | undefined;
  /** The present form of the aggregate for its clients: the same object until that changes. */
  presentation(): Presentation | undefined;
}

export interface Presentation extends AggregatePresentation {
  readonly view?: ViewInfo | undefined;
}

export interface ViewInfo {
  readonly name: string;
  readonly title?: string | undefined;
  readonly version?: string | undefined;
}
