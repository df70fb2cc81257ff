// Makes the templates of the Helm chart from the kustomize base: the same objects, with a few values in place of names that an operator
// chooses. A pattern that is not found is an error: the base has changed.

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

const base = new URL('../../deploy/kubernetes/base/', import.meta.url);

/** Per file: the text of the base, and that of the template. */
const VALUES: Readonly<Record<string, readonly (readonly [base: string, template: string])[]>> = {
  'deployment.yaml': [
    ['replicas: 3', 'replicas: {{ .Values.replicas }}'],
    ['image: stagedoor', 'image: "{{ .Values.image }}"'],
    ['secretName: stagedoor', 'secretName: "{{ .Values.secret }}"'],
    ['- key: database-url', '- key: "{{ .Values.databaseUrlKey }}"'],
  ],
  'autoscaler.yaml': [['minReplicas: 3', 'minReplicas: {{ .Values.replicas }}']],
};

/** The templates by name. */
export function helmTemplates(): ReadonlyMap<string, string> {
  const files: readonly string[] = parse(read('kustomization.yaml')).resources;
  return new Map(files.map((file) => [file, templateOf(file)]));
}

function templateOf(file: string): string {
  let text = read(file);
  if (text.includes('{{')) throw new Error(`${file} of the base has the marks of a template`);
  for (const [before, after] of VALUES[file] ?? []) {
    const parts = text.split(`${before}\n`);
    if (parts.length !== 2) throw new Error(`${file} of the base has "${before}" ${parts.length - 1} times`);
    text = parts.join(`${after}\n`);
  }
  return `# Generated from deploy/kubernetes/base by "npm run docs".\n${text}`;
}

function read(file: string): string {
  return readFileSync(new URL(file, base), 'utf8');
}
