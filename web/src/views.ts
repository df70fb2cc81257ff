// The views of the gateway, as its API has them, and where a refused definition is wrong.

import type { ApiError } from './api.ts';
import { nameIn, type ViewDraft } from './view-draft.ts';

export interface ViewProblem {
  readonly code: string;
  readonly template: string;
  readonly tool: string;
  readonly message: string;
}

/** A record of GET /gateway/views. */
export interface ViewRecord extends ViewDraft {
  readonly problems: readonly ViewProblem[];
  readonly updated_at: string;
  readonly etag: string;
}

/** The items that a caller gets from a view. */
export interface ViewPreview {
  readonly tools: readonly { readonly name: string; readonly description?: string }[];
  readonly count: number;
  readonly tokens: number;
  /** The names of the tools whose calls the user confirms. */
  readonly asks: readonly string[];
  readonly problems: readonly ViewProblem[];
}

/** The definition that a record has. */
export function draftOf({ problems: _, updated_at: __, etag: ___, ...view }: ViewRecord): ViewDraft {
  return view;
}

/** Key of the fault of a tool, or of a template as a whole. */
export function placeOf(template: string, own = ''): string {
  return `${template}/${own}`;
}

/** The faults by the name of a field, by `placeOf`, and by '' for all others. */
export function faultsOf({ issues, message }: ApiError, view: ViewDraft): ReadonlyMap<string, string> {
  const faults = new Map<string, string>();
  if (issues.length === 0) faults.set('', message);
  for (const { loc, msg } of issues) {
    const text = msg.replace(/^Value error, /, '');
    const [place, words] = placed(loc, view, text);
    faults.set(place, [faults.get(place), words].filter(Boolean).join('; '));
  }
  return faults;
}

const FIELDS = ['id', 'title', 'description', 'instructions'];

function placed(
  loc: readonly (string | number)[],
  view: ViewDraft,
  text: string,
): readonly [place: string, words: string] {
  const [first = '', index, field, tool, ...rest] = loc;
  if (FIELDS.includes(String(first))) return [String(first), text];
  const source = first === 'from' ? view.from[Number(index)] : undefined;
  if (source === undefined) return ['', [loc.join('.'), text].filter(Boolean).join(': ')];
  const { template, rename = {} } = source;
  if (field === 'template') return [placeOf(template), text];
  if (field === 'rename' && tool !== undefined) return [placeOf(template, String(tool)), text];
  if (field === 'describe' && tool !== undefined) {
    const own = Object.keys(rename).find((name) => nameIn(source, name) === tool) ?? String(tool);
    return [placeOf(template, own), text];
  }
  return [
    placeOf(template),
    `${[field, tool, ...rest].filter((each) => each !== undefined).join('.')}: ${text}`,
  ];
}
