# Delays of a schedule, in the global order of its actions (plan --format csv, or a run's timeline.csv).
# The delay of a read is the number of block updates between it and the update that it was made for.
# Prints mean, 10th percentile and maximum over the second half of the block updates.
BEGIN { FS = "," }
/^#/ || $1 == "stage" { next }
$1 >= stages { stages = $1 + 1 }
$2 == "F" { read_at[$1, $3] = updates + 0 }
$2 == "U" { microbatch[updates++] = $3 }
END {
  for (k = int(updates / 2); k < updates; k++) {
    for (s = 0; s < stages; s++) {
      delay = k - read_at[s, microbatch[k]]
      count[delay]++
      sum += delay
      n++
      if (delay > max) max = delay
    }
  }
  # Between two ranks the percentile is interpolated.
  place = 0.1 * (n - 1)
  low = value_of_rank(int(place))
  tenth = low + (place - int(place)) * (value_of_rank(int(place) + 1 < n ? int(place) + 1 : n - 1) - low)
  printf "%.10g,%.10g,%d\n", sum / n, tenth, max
}
function value_of_rank(rank,   delay, seen) {
  for (seen = count[0] + 0; seen <= rank; seen += count[++delay]) {}
  return delay + 0
}
