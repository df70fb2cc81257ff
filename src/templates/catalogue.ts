// Reads a folder of template definitions: one folder per template, named like it, with a template.json inside.
// The form of a definition is in definition.ts.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readTemplate, type TemplateDefinition, TemplateError } from './definition.ts';
import { readTemplateText, TemplateFileError } from './template-file.ts';

/** The templates of a folder, as far as they can be used. */
export interface Catalogue {
  /** Sorted by id. */
  readonly templates: readonly TemplateDefinition[];
  /** One line per fault, with the path inside the folder: `weather/template.json: version: is missing`. */
  readonly problems: readonly string[];
}

/** The templates that come with this package, the servers of `gateway start --demo`. */
const BUNDLED_TEMPLATES = fileURLToPath(new URL('../../templates', import.meta.url));

/**
 * Reads all templates of a folder. A file that cannot be used is a problem, not a failure, and so is a folder that
 * cannot be read; a folder inside without template.json is no template.
 */
export async function readCatalogue(folder: string = BUNDLED_TEMPLATES): Promise<Catalogue> {
  let names: string[];
  try {
    const members = await readdir(folder, { withFileTypes: true });
    names = members.filter((member) => !member.isFile()).map(({ name }) => name);
  } catch (thrown) {
    return { templates: [], problems: [`the folder of templates cannot be read (${codeOf(thrown)})`] };
  }
  const read = await Promise.all(names.toSorted().map((name) => readMember(folder, name)));
  return {
    templates: read.flatMap(({ template }) => template ?? []),
    problems: read.flatMap(({ problems }) => problems),
  };
}

async function readMember(
  folder: string,
  name: string,
): Promise<{ template?: TemplateDefinition; problems: readonly string[] }> {
  const label = `${name}/template.json`;
  try {
    const template = readTemplate(await readTemplateText(join(folder, name, 'template.json')), name);
    // The folder is what makes ids unique.
    if (template.id === name) return { template, problems: [] };
    return { problems: [`${label}: id: is "${template.id}", but the folder is "${name}"`] };
  } catch (thrown) {
    if (!(thrown instanceof TemplateError)) throw thrown;
    const isNoTemplate = thrown instanceof TemplateFileError && /^(ENOENT|ENOTDIR)$/.test(thrown.code ?? '');
    return { problems: isNoTemplate ? [] : thrown.issues.map((issue) => `${label}: ${issue}`) };
  }
}

function codeOf(thrown: unknown): string {
  return thrown instanceof Error && 'code' in thrown ? String(thrown.code) : String(thrown);
}
