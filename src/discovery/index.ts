// The table of providers, which search for deployments.

import { docker, podman } from './containers.ts';
import { kubernetes } from './kubernetes.ts';
import type { Provider } from './provider.ts';

export const PROVIDERS: Readonly<Record<string, Provider>> = { docker, podman, kubernetes };
