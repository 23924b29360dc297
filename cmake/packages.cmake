# All parts come from the distribution's packages; deploy/packages.sh lists their names.
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(Protobuf 3.21 REQUIRED)
find_package(Boost 1.74 REQUIRED)
# For all that includes it: the layout of Beast's messages depends on the type of its strings.
target_compile_definitions(Boost::headers INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_BEAST_USE_STD_STRING_VIEW)
find_package(OpenSSL REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Threads REQUIRED)
# By pkg-config: the package's CMake file also wants what only its HTTP server needs.
find_package(PkgConfig REQUIRED)
pkg_check_modules(prometheus_cpp REQUIRED IMPORTED_TARGET prometheus-cpp-core)
find_package(benchmark QUIET)
if(PIPEWRIGHT_BLAS)
  # The one without threads: ranks and runs side by side are what fills the cores.
  set(BLA_VENDOR OpenBLAS)
  find_package(BLAS)
  if(NOT BLAS_FOUND)
    message(FATAL_ERROR "PIPEWRIGHT_BLAS is ON and OpenBLAS was not found: install libopenblas-serial-dev "
                        "(Debian), or configure with -DPIPEWRIGHT_BLAS=OFF.")
  endif()
endif()
if(PIPEWRIGHT_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(PIPEWRIGHT_MPI)
  set(MPI_CXX_SKIP_MPICXX TRUE)
  find_package(MPI COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND)
    message(WARNING "MPI was not found (Debian: libopenmpi-dev openmpi-bin): worker/mpi and the "
                    "pipewright-worker program are left out; everything else still builds.")
    set(PIPEWRIGHT_MPI OFF)
  endif()
endif()
if(NOT benchmark_FOUND)
  message(STATUS "Google Benchmark was not found (Debian: libbenchmark-dev): bench/ is left out.")
endif()

# What the packages' headers do otherwise under ThreadSanitizer.
if(PIPEWRIGHT_SANITIZE MATCHES thread)
  # It knows no fences: counts with acquire and release instead, and none around handlers, which
  # Asio hands from thread to thread under a mutex anyway.
  target_compile_definitions(Boost::headers INTERFACE
    BOOST_ASIO_DISABLE_FENCED_BLOCK BOOST_ASIO_DISABLE_STD_ATOMIC)
  # g++ 12 inlines only one of the two operators of a coroutine's frame, and warns of the pair.
  target_compile_options(Boost::headers INTERFACE -Wno-mismatched-new-delete)
  # Maps of messages would have members that they do not have inside the package's library.
  target_compile_options(protobuf::libprotobuf INTERFACE -U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
endif()
