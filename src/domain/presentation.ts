// How several templates are presented as one server.

/** How everything that a caller may use is presented at `/mcp`. */
export interface AggregatePresentation {
  /** `search`: the list has tools to find the others. Default `list`. */
  readonly mode?: 'list' | 'search' | undefined;
  /** Globs on listed names: what is listed in search mode, too. Default: nothing. */
  readonly always?: readonly string[] | undefined;
  /** For the model, in the place of those of the templates. */
  readonly instructions?: string | undefined;
}
