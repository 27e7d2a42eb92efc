import path from 'node:path'
import { z } from 'zod'
import { RECORD } from '../host/records.ts'
import { SECRETS } from '../system/trust.ts'

/**
 * What is in a backup. Beside it are `history.db`, and with secrets `admin.token` and `release.key`, in `host/` and in
 * `apps/<id>/`. `folder`: of the host; `variables`: the names of those that are left out; `alerts`: how many are.
 */
export type Manifest = z.infer<typeof MANIFEST>

/** A backup with a higher one is of a newer version. */
export const FORMAT = 1
export const MANIFEST_FILE = 'manifest.json'
export const HISTORY = 'history.db'

const COUNT = z.int().min(0)
const APP = z.strictObject({ record: RECORD, variables: z.array(z.string().regex(/^[^=\0]+$/)), alerts: COUNT })
export const MANIFEST = z.strictObject({ format: z.literal(FORMAT), version: z.string().regex(/^[\w.+-]{1,100}$/),
  createdAt: z.iso.datetime(), folder: z.string(), hasSecrets: z.boolean(), alerts: COUNT, apps: z.array(APP) })

/** The folders in a backup, each with the data folder that it is of, the host's first. */
export function placesOf (
  { folder, apps }: Pick<Manifest, 'folder'> & { apps: { record: { id: string, dataDir: string } }[] }
): { inside: string, dataDir: string }[] {
  return [{ inside: 'host', dataDir: folder },
    ...apps.map(({ record: { id, dataDir } }) => ({ inside: path.join('apps', id), dataDir }))]
}

/** The names of the files that such a folder may have. */
export const filesOf = (
  { hasSecrets }: Pick<Manifest, 'hasSecrets'>
): string[] => [HISTORY, ...hasSecrets ? SECRETS : []]
