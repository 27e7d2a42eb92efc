import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import path from 'node:path'

/**
 * Where a data folder that cannot be written is replaced until the next start: folders in memory first, as a disk that
 * is full often is the one with the temporary files too. `folder`: absolute path.
 * @returns absolute paths, the best one first; this user's alone
 */
export function fallbackFolders (folder: string, env: Record<string, string | undefined> = process.env): string[] {
  const name = `clusterdeck-${process.geteuid?.() ?? 'user'}-${
    createHash('sha256').update(folder).digest('hex').slice(0, 16)
  }`
  const places = [env.XDG_RUNTIME_DIR, process.platform === 'linux' ? '/dev/shm' : undefined, tmpdir()]
  return places.filter((place) => place !== undefined && path.isAbsolute(place)).map((place) =>
    path.join(place as string, name)
  )
}
