import { readable } from '../dashboard/readable-text.ts'
import type { Frame } from '../../db/crashes.ts'

/** A stack for reading: the app's own frames stand out, and runs of other frames are folded. */
/** source lines around the place, if known */
type Lines = { number: number, text: string }[] | null
/** `isFirst`: the first frame with lines */
type ShownFrame = { name: string, place: string, isInApp: boolean, line: number | null, lines: Lines, isFirst: boolean }
/** neighbouring frames */
type Run = { isFolded: boolean, label: string, frames: ShownFrame[] }

const NODE_FILE = /^node:/
/** Where languages keep the packages of others, with the name of the package. */
const PACKAGES = Object.freeze([/(?:^|[\\/])node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/g,
  /\/(?:site|dist)-packages\/([^/]+)/g, /\/pkg\/mod\/([^@]+)@/g, /\/gems\/([^/]+?)-\d[^/]*\//g,
  /\/\.cargo\/registry\/src\/[^/]+\/([^/]+?)-\d[^/]*\//g, /\/vendor\/([^/]+\/[^/]+)\//g])
const LANGUAGES: readonly [string, RegExp][] = Object.freeze([['Node.js', NODE_FILE], ['Python',
  /\/lib(?:64)?\/python[\d.]*\/|^<frozen /], ['Go', /\/go[^/]*\/src\/|\/golang\.org\/toolchain@/], ['Java',
  /^(?:javax?|jdk|sun|com\/sun)\//], ['Rust', /^\/rustc\//], ['Ruby', /\/lib\/ruby\/|^<internal:/], ['Deno', /^ext:/]])
const MAX_OWNERS = 3

/** `frames`: innermost first; `lines`: one entry per frame. Returns nothing is folded if no frame is the app's. */
export function foldFrames (frames: Frame[], lines: Lines[] = []): Run[] {
  const first = lines.findIndex(Boolean)
  const hasOwn = frames.some(({ isInApp }) => isInApp)
  const runs: { owners: string[], frames: ShownFrame[] }[] = []
  for (const [index, frame] of frames.entries()) {
    if (runs.at(-1)?.frames[0].isInApp !== frame.isInApp) runs.push({ owners: [], frames: [] })
    const last = runs[runs.length - 1]
    last.owners.push(ownerOf(frame))
    last.frames.push(toShown(frame, lines[index] ?? null, index === first))
  }
  return runs.map(({ owners, frames }) => ({ isFolded: hasOwn && !frames[0].isInApp,
    label: labelOf(frames, [...new Set(owners)]), frames })
  )
}

function labelOf (frames: ShownFrame[], owners: string[]) {
  const named = owners.slice(0, MAX_OWNERS).join(', ')
  return `${frames.length} ${frames.length === 1 ? 'frame' : 'frames'} of ${named}${
    owners.length > MAX_OWNERS ? ' and others' : ''
  }`
}

function ownerOf ({ file }: Frame) {
  if (file === null) return 'the runtime'
  const [name] = PACKAGES.map((pattern) => [...file.matchAll(pattern)].at(-1)?.[1]).filter((found) =>
    found !== undefined
  )
  return readable(name ?? LANGUAGES.find(([, pattern]) => pattern.test(file))?.[0] ?? 'others').slice(0, 60)
}

function toShown ({ function: name, file, line, column, isInApp }: Frame, lines: Lines, isFirst: boolean): ShownFrame {
  const place = [file ?? 'native code', line, column].filter((part) => part !== null && part !== undefined).join(':')
  return { name: readable(name ?? '(anonymous)'), place: readable(place), isInApp, line, lines, isFirst }
}
