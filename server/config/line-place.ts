/** Where a line begins in the logs of a deck: its slot, its stream (o: stdout, e: stderr), and its position there. */
export const PLACE = /^\d{1,3}[oe]\d{1,15}$/
