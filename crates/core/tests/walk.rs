//! The core in a closed loop with a small, kind world: every plan is carried
//! out, replication flows, processes start. Shows that each story ends Healthy
//! and quiet, and that no acknowledged write is lost on the way. The unkind
//! world is the simulator's.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test that cannot go on ends"
)]

mod world;

use world::World;

#[test]
fn a_new_cluster_of_any_size_becomes_healthy_and_quiet() {
    for replicas in [1, 2, 3, 4, 5] {
        let mut world = World::new(replicas);
        world.run_until_healthy();
    }
}

#[test]
fn a_killed_primary_is_failed_over_and_comes_back() {
    for replicas in [3, 5] {
        let mut world = World::healthy(replicas);
        let old = world.primary();
        world.write(5);
        world.write_unacknowledged(old, 2);
        world.kill_mysqld(old);
        world.run_until_healthy();
        assert_ne!(world.primary(), old);
    }
}

#[test]
fn a_killed_single_instance_starts_again_where_it_is() {
    let mut world = World::healthy(1);
    world.write(5);
    world.kill_mysqld(0);
    world.run_until_healthy();
    assert_eq!(world.primary(), 0);
}

#[test]
fn a_killed_primary_of_two_comes_back_on_a_new_volume_if_it_has_a_tail() {
    let mut world = World::healthy(2);
    let old = world.primary();
    world.write(5);
    world.write_unacknowledged(old, 1);
    world.kill_mysqld(old);
    world.run_until_healthy();
    assert_eq!(
        world.seen.record.generations.len(),
        1,
        "{:?}",
        world.seen.record
    );
}

#[test]
fn a_lost_node_is_failed_over_after_silence_and_comes_back() {
    let mut world = World::healthy(3);
    let old = world.primary();
    world.write(5);
    world.lose_node(old);
    world.run_until(|world| world.primary() != old && world.serves());
    world.write(5);
    world.return_node(old);
    world.run_until_healthy();
}

#[test]
fn a_leaving_primary_hands_over_and_comes_back() {
    let mut world = World::healthy(3);
    let old = world.primary();
    world.write(5);
    world.leave(old);
    world.run_until(|world| world.primary() != old && world.serves());
    world.replace_pod(old);
    world.run_until_healthy();
}

#[test]
fn a_requested_switchover_happens_once() {
    let mut world = World::healthy(3);
    let old = world.primary();
    world.write(5);
    world.request("r1", None);
    world.run_until_healthy();
    let new = world.primary();
    assert_ne!(new, old);
    world.run_until_healthy();
    assert_eq!(world.primary(), new);
}

#[test]
fn a_replaced_acker_is_recorded_in_its_new_life() {
    let mut world = World::healthy(3);
    world.write(5);
    world.lose_node(2);
    world.write(5);
    world.return_node(2);
    world.run_until_healthy();
    assert!(
        world
            .seen
            .record
            .ackers
            .iter()
            .any(|member| member.incarnation == "2")
    );
}

#[test]
fn two_failovers_in_a_row_lose_nothing() {
    let mut world = World::healthy(3);
    for _ in 0..2 {
        world.write(5);
        let old = world.primary();
        world.kill_mysqld(old);
        world.run_until_healthy();
    }
}

#[test]
fn all_at_once_lose_power_and_the_same_primary_comes_back() {
    let mut world = World::healthy(3);
    world.write(5);
    let old = world.primary();
    for ordinal in 0..3 {
        world.lose_node(ordinal);
    }
    world.run(20);
    for ordinal in 0..3 {
        world.return_node(ordinal);
    }
    world.run_until_healthy();
    assert_eq!(world.primary(), old);
}
