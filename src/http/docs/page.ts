// What a page is before anybody asked for it. Types only.

export interface Page {
  readonly html: string;
  /** As `[name, value, …]`. */
  readonly headers: readonly string[];
}
