// The files with accounts of clusters that sync uses: that of the pod, or kubeconfigs.

import { delimiter, join } from 'node:path';

export const POD_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** The files that KUBECONFIG names, else the one at home. They may be missing. */
export function kubeconfigs(env: Readonly<Record<string, string | undefined>>): string[] {
  if (env.KUBECONFIG) return env.KUBECONFIG.split(delimiter).filter(Boolean);
  const home = env.HOME || env.USERPROFILE; // Windows has the latter
  return home ? [join(home, '.kube/config')] : [];
}
