// Extensions of an aggregate. A method that MCP does not have goes to the one template that announces its extension; the
// skills of all its templates are one list. Source: ADR 29.

import { filter, firstValueFrom, type Observable } from 'rxjs';
import { type ExchangeRequest, isSourcedAnswer, type SourcedEvent } from '../../domain/calls/exchange.ts';
import { parsedResult } from '../../domain/calls/parsed-result.ts';
import { isDeeper, isJsonObject, type JsonObject, JsonText } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Client, Owner } from '../../domain/mcp/client.ts';
import type { AggregateLists } from './lists/aggregate-lists.ts';
import type { Selection } from './selection.ts';
import { withShownUris } from './uris/composed-uris.ts';
import { SKILLS } from './uris/resource-targets.ts';

/** Sends a request to a template, in the session of the client if it has one. */
export type ToTemplate = (template: string, request: ExchangeRequest) => Observable<SourcedEvent>;

interface ExtensionsDeps {
  readonly lists: Pick<AggregateLists, 'announces' | 'hasTasks'>;
  readonly selection: Pick<Selection, 'templates' | 'directory'>;
}

/** Pages of the skills of one template, and skills of all. */
const MAX_PAGES = 20;
const MAX_SKILLS = 2_000;
/** Bytes of JSON of the skills of one template. The page that exceeds them is left out, and ends the list. */
const MAX_SKILL_BYTES = 4 * 1024 * 1024;

/** Finds the template of a method of an extension, and gathers the skills. */
export class AggregateExtensions {
  readonly #deps: ExtensionsDeps;

  constructor(deps: ExtensionsDeps) {
    this.#deps = deps;
  }

  /**
   * The one template that announces an extension whose last segment is the first one of the method: `com.acme/widgets` for
   * `widgets/list`. Undefined for none and for several: servers are never tried to find out.
   */
  templateOfMethod(method: string, owner: Owner): string | undefined {
    const [first = ''] = method.split('/', 1);
    const [only, ...others] = method.includes('/') ? this.#announcing(first, owner) : [];
    return others.length === 0 ? only : undefined;
  }

  /** True when a template has tasks. */
  hasTasks(owner: Owner): boolean {
    const { selection, lists } = this.#deps;
    return selection.templates(owner).some((template) => lists.hasTasks(template, owner));
  }

  /** The skills of the templates. One that does not answer is left out. */
  async listSkills({ owner }: Client, toTemplate: ToTemplate): Promise<JsonText> {
    const { uris } = this.#deps.selection.directory;
    const templates = this.#announcing(SKILLS, owner);
    const read = await Promise.all(templates.map((template) => skillsOf(template, toTemplate)));
    const found = templates.map((template, index) => ({
      template,
      skills: (read[index] ?? []).filter(({ uri }) => uris.isServed(template, uri)),
    }));
    await uris.learnSkills(
      found.map(({ template, skills }) => ({ template, uris: skills.map(({ uri }) => uri) })),
    );
    const skills = found.flatMap(({ template, skills }) =>
      skills.map((skill) =>
        withShownUris(JsonText.ofValue(skill), (uri) => uris.shown(template, uri, owner)),
      ),
    );
    return JsonText.ofText(`{"skills":[${skills.slice(0, MAX_SKILLS).map(({ text }) => text)}]}`);
  }

  #announcing(extension: string, owner: Owner): readonly string[] {
    const { selection, lists } = this.#deps;
    return selection.templates(owner).filter((template) => lists.announces(extension, template, owner));
  }
}

type Skill = JsonObject & { readonly uri: string };

/** All pages. Those before a page that fails. */
async function skillsOf(template: string, toTemplate: ToTemplate): Promise<Skill[]> {
  const skills: Skill[] = [];
  let cursor: string | undefined;
  let bytes = 0;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const { result, size } = await resultOf(toTemplate(template, { method: 'skills/list', params }));
    bytes += size;
    if (!Array.isArray(result?.skills) || bytes > MAX_SKILL_BYTES) break;
    skills.push(...result.skills.filter(isSkill));
    const { nextCursor } = result;
    if (
      typeof nextCursor !== 'string' ||
      nextCursor === '' ||
      nextCursor === cursor ||
      skills.length > MAX_SKILLS
    )
      break;
    cursor = nextCursor;
  }
  return skills.slice(0, MAX_SKILLS);
}

/** True for a listed skill; one that is nested deeper than the limit cannot be serialized again. */
function isSkill(listed: unknown): listed is Skill {
  return isJsonObject(listed) && typeof listed.uri === 'string' && !isDeeper(listed, LIMITS.nestingDepth);
}

async function resultOf(
  events$: Observable<SourcedEvent>,
): Promise<{ readonly result?: JsonObject; readonly size: number }> {
  try {
    const { event } = await firstValueFrom(events$.pipe(filter(isSourcedAnswer)));
    if (event.kind !== 'result') return { size: 0 };
    const result = parsedResult(event.result, 'exactValue');
    return isJsonObject(result) ? { result, size: event.result.bytes.length } : { size: 0 };
  } catch {
    return { size: 0 }; // a template that does not answer has no skills now
  }
}
