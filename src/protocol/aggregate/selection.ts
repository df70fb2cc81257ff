// What is served as one server: everything that a caller may use, or one view.

import { NEVER, type Observable } from 'rxjs';
import type { ListField } from '../../domain/mcp.ts';
import type { AggregatePresentation } from '../../domain/presentation.ts';
import { mayUse } from '../../domain/rights.ts';
import type { ViewLimit } from '../../domain/view.ts';
import type { Owner } from '../ports.ts';
import { AggregateDirectory, type Directory } from './aggregate-directory.ts';
import type { AggregateLists } from './aggregate-lists.ts';

export interface Selection {
  /** The id of the view; undefined for everything. */
  readonly view: string | undefined;
  readonly directory: Directory;
  /** The templates that exist, in their order. */
  templates(owner: Owner): readonly string[];
  /** True when the caller gets what changes in this template, which may be gone. */
  includes(owner: Owner, template: string): boolean;
  /** Hot: lists that changed because the selection did. */
  readonly changed$: Observable<ListField>;
  limitOf?(listed: string): ViewLimit | undefined;
  /** Counts a call of a listed tool, of which so many a minute are allowed. A promise where other nodes count, too. RATE_LIMIT_EXCEEDED. */
  countCall?(listed: string, owner: Owner, most: number): Promise<void> | undefined;
  /** How it presents itself now. The same object until that changes. */
  presentation(): Presentation | undefined;
}

export interface Presentation extends AggregatePresentation {
  readonly view?: ViewInfo | undefined;
}

export interface ViewInfo {
  readonly name: string;
  readonly title?: string | undefined;
  readonly version?: string | undefined;
  /** The names begin with those of the templates. */
  readonly isPrefixed: boolean;
}

/** Everything that a caller may use. `templates`: all that exist. */
export function everything(
  lists: AggregateLists,
  templates: () => readonly string[],
  presentation?: Presentation,
): Selection {
  const ofOwner = (owner: Owner) => templates().filter((template) => mayUse(owner, template));
  return {
    view: undefined,
    directory: new AggregateDirectory(lists, ofOwner),
    templates: ofOwner,
    includes: mayUse,
    changed$: NEVER,
    presentation: () => presentation,
  };
}
