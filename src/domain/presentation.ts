// How several templates are presented as one server.

import type { ViewNames } from './view.ts';

/** How everything that a caller may use is presented at `/mcp`. */
export interface AggregatePresentation {
  /** Of tools and prompts. `prefixed`: all begin with the name of their template; `bare`: those that clash do. Default `prefixed`. */
  readonly names?: ViewNames | undefined;
  /** `search`: the list has tools to find the others. Default `list`. */
  readonly mode?: 'list' | 'search' | undefined;
  /** Globs on listed names: what is listed in search mode, too. Default: nothing. */
  readonly always?: readonly string[] | undefined;
  /** For the model, in the place of those of the templates. */
  readonly instructions?: string | undefined;
}
