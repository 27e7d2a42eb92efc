/** A CPU profile as V8 writes it. `nodes`: the root first; `samples`: and how long each of them lasted. */
export function profileOf (
  nodes: [id: number, name: string, children?: number[], place?: { url?: string, lineNumber?: number }][],
  samples: [id: number, ms: number][]
) {
  const lengths = samples.map(([, ms]) => ms * 1000)
  return {
    nodes: nodes.map(([id, functionName, children = [], { url = 'file:///srv/app/app.js', lineNumber = id } = {}]) => ({
      id,
      callFrame: { functionName, url, lineNumber, columnNumber: 0 },
      children
    })),
    startTime: 1000,
    endTime: 1000 + 50 + lengths.reduce((sum, each) => sum + each, 0),
    samples: samples.map(([id]) => id),
    timeDeltas: [50, ...lengths.slice(0, -1)]
  }
}
