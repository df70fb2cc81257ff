// A view: an MCP server that is made of choices from templates. Its definition is what an operator writes, in its JSON form.
// view-schema.ts checks it; protocol/aggregate carries it out.

import type { JsonObject } from '../json/json.ts';

export interface ViewDefinition {
  /** The id, from the same names as those of templates: `/mcp/{id}`. */
  readonly id: string;
  readonly title?: string;
  readonly description?: string;
  /** The instructions for the model. Absent: those of its templates, under headings. */
  readonly instructions?: string;
  readonly from: readonly ViewSource[];
  /** The form of the listed names. Default: `bare`. */
  readonly names?: ViewNames;
  /** The longest listed name, in characters. Default: 64. */
  readonly name_length?: number;
  /** `search`: the list has tools to find the others. Default: `list`. */
  readonly mode?: 'list' | 'search';
  /** The globs on the listed names that are listed in search mode, too. */
  readonly always?: readonly string[];
  /** The limits, by the listed name of the tool. */
  readonly limits?: Readonly<Record<string, ViewLimit>>;
  /**
   * Says which tools need an approval. `pinned`: one that is new or changed is withheld until an admin approves it. Default:
   * `none`.
   */
  readonly approve?: 'none' | 'pinned';
  /** Globs on listed names: the user confirms each call of these tools. */
  readonly confirm?: readonly string[];
  /** Free text of the operator. */
  readonly version?: string;
}

/** `prefixed`: `<template>__<tool>`. */
export type ViewNames = 'bare' | 'prefixed';

/** The choice of a view from one template. A renamed tool goes by its new name in `describe`, `annotate` and `defaults`. */
export interface ViewSource {
  readonly template: string;
  /** Globs on the names of the server. Absent: all. */
  readonly tools?: readonly string[];
  /** The hints that a tool must have. */
  readonly only?: ViewHints;
  /** The resources of the view, by globs on URIs. Default: `all`. */
  readonly resources?: ViewChoice;
  /** The prompts of the view, by globs on names. Default: `all`. */
  readonly prompts?: ViewChoice;
  /** New names by those of the server. */
  readonly rename?: Readonly<Record<string, string>>;
  readonly describe?: Readonly<Record<string, string>>;
  readonly annotate?: Readonly<Record<string, ToolHints>>;
  /** Arguments that the gateway sets, by tool and name. */
  readonly defaults?: Readonly<Record<string, JsonObject>>;
}

/** The presentation, at `/mcp`, of everything that a caller may use. */
export interface AggregatePresentation {
  /**
   * The names of tools and prompts. `prefixed`: all begin with the name of their template; `bare`: those that clash do.
   * Default: `prefixed`.
   */
  readonly names?: ViewNames | undefined;
  /** `search`: the list has tools to find the others. Default: `list`. */
  readonly mode?: 'list' | 'search' | undefined;
  /** The globs on the listed names that are listed in search mode, too. Default: nothing. */
  readonly always?: readonly string[] | undefined;
  /** The instructions for the model, in place of those of the templates. */
  readonly instructions?: string | undefined;
}

export type ViewChoice = 'all' | 'none' | readonly string[];

export interface ViewHints {
  readonly readOnly?: boolean;
  readonly destructive?: boolean;
  readonly idempotent?: boolean;
  readonly openWorld?: boolean;
}

/** Annotations that replace those of the server. A type, because interfaces are no JSON objects. */
export type ToolHints = {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
};

export interface ViewLimit {
  /** The longest wait for the first answer, in seconds. */
  readonly timeout?: number;
  /** The most bytes of a result. */
  readonly result_bytes?: number;
  /** The most calls of one principal per minute. */
  readonly calls_per_minute?: number;
}

/**
 * Counts calls by key, of which `limit` are allowed a minute; one that is refused has `retryAfterSeconds`, and is
 * not counted.
 */
export interface CallLimiter {
  take(key: string, limit: number): CountedCall | Promise<CountedCall>;
}

export interface CountedCall {
  readonly retryAfterSeconds?: number;
}

/**
 * The tools and prompts that a bare name stands for, as `<template>/<own name>`; empty for a name that none may have,
 * because two wanted it.
 */
export interface NameTargets {
  readonly tools: Readonly<Record<string, string>>;
  readonly prompts: Readonly<Record<string, string>>;
}

export const NO_NAMES: NameTargets = { tools: {}, prompts: {} };

export interface StoredView {
  readonly definition: ViewDefinition;
  readonly names: NameTargets;
  readonly source: 'api' | 'file';
  /** The fingerprint of its entry in the registry file; undefined for a view of the API. */
  readonly fingerprint?: string;
  /** ISO 8601. */
  readonly updatedAt: string;
}

/**
 * A fault of a view in its present surroundings, although its definition alone is right. `template` and `tool` are
 * empty where the fault concerns none.
 */
export interface ViewProblem {
  readonly code: ViewProblemCode;
  readonly template: string;
  readonly tool: string;
  /** What is wrong, in one sentence. */
  readonly message: string;
}

export type ViewProblemCode =
  | 'template_unknown'
  | 'template_missing'
  | 'name_taken'
  | 'glob_unmet'
  | 'rename_unmet'
  | 'describe_unmet'
  | 'annotate_unmet'
  | 'default_unmet'
  | 'default_unknown_argument'
  | 'default_in_schema'
  | 'always_unmet'
  | 'limit_unmet'
  | 'tool_withheld'
  | 'confirm_unmet';
