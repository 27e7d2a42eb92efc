import { DeckError } from '../errors.ts'

type Candidate = { member: string, labels: Record<string, string> }

export function matchesLabels (labels: Record<string, string>, wanted: Record<string, string> = {}) {
  return Object.entries(wanted).every(([label, value]) => Object.hasOwn(labels, label) && labels[label] === value)
}

/**
 * Members of one batch take their turns at the same time.
 * @param wanted `order`: a label to sort by; members without it come last
 * @throws {DeckError} invalid-body
 */
export function batchesOf ({ batch = 1, order, canary }: { batch?: string | number, order?: string, canary?: string },
  members: Candidate[]): string[][]
{
  if (order !== undefined && !members.some(({ labels }) => Object.hasOwn(labels, order))) {
    throw new DeckError('invalid-body', `order: expected a label that a member has, received ${JSON.stringify(order)}`)
  }
  const names = sortMembers(members, order).map(({ member }) => member)
  if (canary !== undefined && !names.includes(canary)) {
    throw new DeckError('invalid-body',
      `canary: expected one of ${names.join(', ')}, received ${JSON.stringify(canary)}`)
  }
  const rest = names.filter((name) => name !== canary)
  const size = sizeOf(batch, names.length)
  const batches = Array.from({ length: Math.ceil(rest.length / size) },
    (_, index) => rest.slice(index * size, (index + 1) * size))
  return canary === undefined ? batches : [[canary], ...batches]
}

/** `batch`: a number, or a share of all @returns at least one */
function sizeOf (batch: string | number, count: number): number {
  const [, digits] = /^(\d+)%$/.exec(String(batch)) ?? []
  const share = digits === undefined ? 100 : Number(digits)
  const size = digits === undefined ? Number(batch) : Math.max(1, Math.floor(count * share / 100))
  if (Number.isSafeInteger(size) && size >= 1 && share >= 1 && share <= 100) return size
  throw new DeckError('invalid-body',
    `batch: expected a number of members from 1 or a share such as "25%", received ${JSON.stringify(batch)}`)
}

function sortMembers (members: Candidate[], label?: string) {
  const collator = new Intl.Collator('en', { numeric: true })
  const valueOf = ({ labels }: Candidate) =>
    label === undefined ? '' : Object.hasOwn(labels, label) ? labels[label] : undefined
  return [...members].sort((one, other) => {
    const [a, b] = [valueOf(one), valueOf(other)]
    if (a !== b) return a === undefined ? 1 : b === undefined ? -1 : collator.compare(a, b)
    return collator.compare(one.member, other.member)
  })
}
