import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { askHost, lenient } from '../api/ask.ts'
import { codeText } from './api-builds.ts'
import { PREVIEW } from '../api/shapes.ts'
import type { AppFleet as Fleet, Wanted } from './app-fleet.ts'
import type { Person } from './rpc-client.ts'

/**
 * What a rollout over the fleet would do: which host has its turn when and gets what, and which are left out. Nothing
 * is changed.
 */
export type FleetPreview = z.infer<typeof FLEET_PREVIEW>
export type PreviewedHost = FleetPreview['batches'][number][number]

const HOST = z.strictObject({ member: z.string(),
  release: z.string().nullable().describe('which runs now, as its host calls it'),
  code: z.string().describe('which runs now'),
  becomes: z.string().nullable().describe(
    'what it would run, as its host says; null: it was not asked, or did not say'
  ), problem: z.string().nullable().describe('why its turn would fail') })

export const FLEET_PREVIEW = z.strictObject({ kind: z.enum(['restart', 'deploy', 'rollback']),
  batches: z.array(z.array(HOST)).describe('in the order of their turns'),
  leftOut: z.array(z.strictObject({ member: z.string(), reason: z.string() })),
  refusals: z.array(z.string()).describe('why it would be refused as a whole') }).meta({ id: 'FleetPreview' })

/** More are not asked; what the first ones say is what matters. */
const MOST_ASKED = 20
const WITHIN_MS = 3000

const { release, commits, files, refusals } = PREVIEW.shape
/** What is read of the answer of another host; null: another version has answered something else. */
const SAID = lenient(
  z.object({ release: release.unwrap().pick({ id: true, isNew: true, package: true, git: true }).nullable(), commits,
    files: files.unwrap().omit({ items: true }).nullable(), refusals })
).nullable().catch(null)

export async function previewFleetRollout (fleet: Fleet, wanted: Wanted, person: Person): Promise<FleetPreview> {
  const { batches, leftOut, refusals } = await fleet.plan(wanted)
  const { members } = fleet.status()
  const asked = new Set(batches.flat().slice(0, MOST_ASKED))
  const toHost = async (member: string) => {
    const known = members.find((each) => each.member === member)
    const said = asked.has(member)
      ? await previewOn(fleet, member, { wanted, person })
      : { becomes: null, problem: null }
    return { member, release: known?.release ?? null, code: codeText(known?.code ?? null), ...said }
  }
  return { kind: wanted.kind, batches: await Promise.all(batches.map((batch) => Promise.all(batch.map(toHost)))),
    leftOut, refusals }
}

async function previewOn (fleet: Fleet, member: string,
  { wanted: { kind, path, digest, release }, person }: { wanted: Wanted, person: Person }
): Promise<Pick<PreviewedHost, 'becomes' | 'problem'>> {
  if (kind === 'restart') return { becomes: 'the same release', problem: null }
  if (digest !== undefined) return { becomes: 'the folder that was pushed', problem: null }
  try {
    const said = await askHost(fleet, member, { method: 'POST', path: '/rollouts/preview',
      body: { kind, path, release }, answer: SAID, withinMs: WITHIN_MS }, person)
    if (!said) return { becomes: null, problem: null }
    return { becomes: becomesText(said), problem: said.refusals.map(({ message }) => message).join('; ') || null }
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    return { becomes: null, problem: error.message }
  }
}

/** @returns `r4, new (1.5.0, 4be1a4be1a, 3 commits, 12 files)` */
function becomesText ({ release, commits, files }: NonNullable<z.infer<typeof SAID>>): string | null {
  if (!release) return null
  const { git } = release
  const differing = files ? files.changed + files.added + files.removed : null
  const counted = ({ items, hasMore }: { items: unknown[], hasMore: boolean }, what: string) =>
    items.length > 0
      ? `${items.length}${hasMore ? ' or more' : ''} ${what} ${items.length === 1 ? 'commit' : 'commits'}`
      : null
  const facts = [release.package?.version, git && `${git.commit.slice(0, 10)}${git.isDirty ? '+' : ''}`,
    commits && counted(commits.added, 'new'), commits && counted(commits.removed, 'removed'),
    differing === null
      ? null
      : differing === 0
      ? 'no file differs'
      : differing === 1
      ? '1 file differs'
      : `${differing} files differ`].filter(Boolean)
  return `${release.id}${release.isNew ? ', new' : ''}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}`
}
